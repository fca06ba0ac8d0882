// A checkpoint: a folder step{N}/ that stands alone (config.yaml, model.safetensors, optim.safetensors, trainer.json;
// of a run that keeps averaged weights, ema.safetensors; of one that has a tokenizer, tokenizer.json; of several ranks,
// shards of each .safetensors file: checkpoint_shards.h). It appears complete or not at all, and `latest` moves to it
// afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/tensor_files.h"
#include "siamese/models/model.h"
#include "siamese/train/average.h"
#include "siamese/train/checkpoint_shards.h"
#include "siamese/train/config.h"
#include "siamese/train/optimizer.h"
#include "siamese/train/run_tokenizer.h"
#include "siamese/train/trainer_state.h"

namespace siamese::train {

// What a checkpoint holds, of a run in progress.
struct RunParts {
  const models::Model& model;
  Optimizer& optimizer;
  const WeightAverage& average;
  const RunTokenizer& tokenizer;
  const WeightParts* weights = nullptr;  // the optimizer is divided among ranks: each has a part of its state
};

// `group`: the other ranks help (help_save_checkpoint), each writes a part of it. SystemError when one of them could
// not, naming it.
std::filesystem::path save_checkpoint(const std::filesystem::path& run_dir, const RunConfig& config,
                                      const RunParts& parts, const TrainerState& state, comm::Group* group = nullptr);
// The other side. Whether it went well, rank 0 says.
void help_save_checkpoint(const RunConfig& config, const RunParts& parts, comm::Group& group);

// The same in steps, for who writes in the background (background_save.h).
// What a process writes. It refers to the tensors of the run until they are copied.
struct CheckpointContent {
  CheckpointContent(const RunConfig& config, const RunParts& parts, const TrainerState& state,
                    const comm::Group* group);
  std::vector<ShardFile> write_shards(const std::filesystem::path& folder) const;

  RunConfig config;
  RunTokenizer tokenizer;
  TrainerState state;
  Shards shards;
  bool averaged;
  bool by_ranks;
};
// Rank 0, or one process: where it is written aside. The other ranks hear of it in told_folder; "": there is none.
std::unique_ptr<io::AtomicDirectory> open_checkpoint(const std::filesystem::path& run_dir, int64_t step,
                                                     comm::Group* group);
std::filesystem::path told_folder(comm::Group& group);
// Once all files of tensors are there: the rest, its place in the run and `latest`.
std::filesystem::path complete_checkpoint(const std::filesystem::path& run_dir, io::AtomicDirectory& folder,
                                          const CheckpointContent& content, const std::vector<ShardFile>& files);

// Fills the parts, but for the tokenizer; DataError naming the file when it is truncated or damaged, does not fit, or
// was saved under another model than `model`.
TrainerState load_checkpoint(const std::filesystem::path& checkpoint, const models::ModelConfig& model,
                             const RunParts& parts);

// The weights alone with their config, as a folder that stands alone: for eval, generate and init.from; there is
// nothing to resume. Written aside and renamed as a whole; an existing folder is replaced with `overwrite` only.
void save_weights(const std::filesystem::path& folder, const RunConfig& config, const models::Model& model,
                  bool overwrite, const RunTokenizer& tokenizer = {});

// UsageError when something stands at `folder`, unless it is empty, or `overwrite` is given and it holds weights alone.
// Where nothing stands, nothing may come meanwhile (`refused`).
io::Standing check_free_for_weights(const std::filesystem::path& folder, bool overwrite);

// Weights as they are stored, in our names or in another layout (formats/). DataError when they say that they were
// written in another version of our format.
struct WeightFiles {
  // A file, an index of shards, or a folder with either.
  static WeightFiles open(const std::filesystem::path& path);

  io::TensorFiles files;
  std::string scheme;  // the residual scheme that they say they are for; "" when they do not say
};

// A model with the weights of a run directory (its latest) or checkpoint, and the config it was trained with.
struct LoadedModel {
  RunConfig config;
  std::unique_ptr<models::Model> model;
  int64_t step = 0;
  std::filesystem::path checkpoint;
  std::string tokenizer;  // the hash of its tokenizer.json, as trainer.json says it; "": it does not
  // Of a checkpoint in the middle of a residual warm-up those of its step, which the model has; else empty.
  std::vector<double> branch_scales = {};
};
// The config of a run directory's latest checkpoint, or of a checkpoint.
RunConfig load_config(const std::filesystem::path& run_or_checkpoint);

// Whether averaged weights belong to it: a folder of weights alone has none, whatever its config says of training.
bool keeps_average(const std::filesystem::path& run_or_checkpoint);

enum class Weights { trained, averaged };
// DataError when averaged weights are asked for and the checkpoint has none, and when config.yaml is not what the
// weights and the state were saved under (config_keys.h). `least_context`: a model with rotary
// positions can see more tokens than it was trained with. `device`: another one than the config's engine.device, which
// may be elsewhere.
LoadedModel load_model(const std::filesystem::path& run_or_checkpoint, Weights weights = Weights::trained,
                       at::ScalarType dtype = at::kFloat, int64_t least_context = 0,
                       std::optional<at::Device> device = std::nullopt);

}  // namespace siamese::train

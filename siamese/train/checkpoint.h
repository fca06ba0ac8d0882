// A checkpoint: a folder step{N}/ that stands alone (config.yaml, model.safetensors, optim.safetensors, trainer.json;
// of a run that keeps averaged weights, ema.safetensors). It appears complete or not at all, and `latest` moves to it
// afterwards.
#pragma once

#include <cstdint>
#include <filesystem>

#include "siamese/models/model.h"
#include "siamese/train/average.h"
#include "siamese/train/config.h"
#include "siamese/train/optimizer.h"
#include "siamese/train/trainer_state.h"

namespace siamese::train {

// What a checkpoint holds, of a run in progress.
struct RunParts {
  const models::Model& model;
  AdamW& optimizer;
  const WeightAverage& average;
};

std::filesystem::path save_checkpoint(const std::filesystem::path& run_dir, const RunConfig& config,
                                      const RunParts& parts, const TrainerState& state);

// Fills the parts; DataError naming the file when it is truncated or does not fit.
TrainerState load_checkpoint(const std::filesystem::path& checkpoint, const RunParts& parts);

// The weights alone with their config, as a folder that stands alone: for eval, generate and init.from; there is
// nothing to resume. Written aside and renamed as a whole; an existing folder is replaced.
void save_weights(const std::filesystem::path& folder, const RunConfig& config, const models::Model& model);

// UsageError when something stands at `folder`, unless it is empty, or `overwrite` is given and it holds weights alone.
void check_free_for_weights(const std::filesystem::path& folder, bool overwrite);

// The residual scheme that a file of weights says it is for; "" when it does not say. DataError when it says that it
// was written in another format than ours.
std::string stored_scheme(const std::filesystem::path& model_file);

// A model with the weights of a run directory (its latest) or checkpoint, and the config it was trained with.
struct LoadedModel {
  RunConfig config;
  std::unique_ptr<models::Model> model;
  int64_t step = 0;
  std::filesystem::path checkpoint;
};
// The config of a run directory's latest checkpoint, or of a checkpoint.
RunConfig load_config(const std::filesystem::path& run_or_checkpoint);

enum class Weights { trained, averaged };
// DataError when averaged weights are asked for and the checkpoint has none.
LoadedModel load_model(const std::filesystem::path& run_or_checkpoint, Weights weights = Weights::trained);

}  // namespace siamese::train

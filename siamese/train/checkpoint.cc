#include "siamese/train/checkpoint.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/fields.h"
#include "siamese/formats/convert.h"
#include "siamese/formats/settings.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/message.h"
#include "siamese/io/run_dir.h"
#include "siamese/models/registry.h"
#include "siamese/models/weights.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/device.h"
#include "siamese/train/run_folder.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

// A file of tensors of a checkpoint, all of which were saved under one model.
void load_part(const fs::path& path, const models::ModelConfig& model, const fs::path& config_file,
               const std::vector<models::NamedTensor>& tensors) {
  const io::TensorFiles files = io::TensorFiles::open(path);
  formats::check_version(files);
  formats::check_saved_model(files, config::print(model), config_file.string());
  models::load_tensors(files, tensors);
}

std::map<std::string, std::string> weights_metadata(const RunConfig& config) {
  return formats::metadata_of(formats::Layout::siamese, config.model);
}

void write_weights(const fs::path& folder, const RunConfig& config, const models::Model& model,
                   const RunTokenizer& tokenizer) {
  io::write_file_atomic(folder / io::kConfigFile, config_text(config));
  models::save_tensors(folder / io::kModelFile, models::named_values(model.parameters()), weights_metadata(config));
  if (tokenizer.there()) io::write_file_atomic(folder / io::kTokenizerFile, tokenizer.json);
}

// The averages with the buffers: the file stands in for model.safetensors.
std::vector<models::NamedTensor> averaged_values(const RunParts& parts) {
  std::vector<models::NamedTensor> tensors = parts.average.state();
  for (const auto& [name, value] : parts.model.parameters().buffers()) tensors.push_back({name, value, true});
  return tensors;
}

bool holds_weights_alone(const fs::path& folder) {
  return is_folder(folder) && io::missing_files(folder, io::CheckpointUse::weights).empty() &&
         folder_entries(folder).size() == (is_file(folder / io::kTokenizerFile) ? 3 : 2);
}

}  // namespace

fs::path save_checkpoint(const fs::path& run_dir, const RunConfig& config, const RunParts& parts,
                         const TrainerState& state) {
  const std::string name = io::checkpoint_name(state.step);
  check_only_checkpoint(run_dir / name);
  io::AtomicDirectory folder(run_dir / name);
  write_weights(folder.path(), config, parts.model, parts.tokenizer);
  models::save_tensors(folder.path() / io::kOptimFile, parts.optimizer.state(), weights_metadata(config));
  std::vector<std::string> further_files;
  if (parts.tokenizer.there()) further_files.emplace_back(io::kTokenizerFile);
  if (parts.average.kept()) {
    further_files.emplace_back(io::kAverageFile);
    models::save_tensors(folder.path() / io::kAverageFile, averaged_values(parts), weights_metadata(config));
  }
  io::write_file_atomic(folder.path() / io::kTrainerFile, to_json(state, further_files));
  folder.commit();
  io::write_latest(run_dir, name);
  return run_dir / name;
}

void save_weights(const fs::path& folder, const RunConfig& config, const models::Model& model, bool overwrite,
                  const RunTokenizer& tokenizer) {
  io::make_directory(fs::absolute(folder / "..").lexically_normal());
  io::AtomicDirectory aside(folder);
  write_weights(aside.path(), config, model, tokenizer);
  aside.commit(check_free_for_weights(folder, overwrite));
}

io::Standing check_free_for_weights(const fs::path& folder, bool overwrite) {
  if (!is_taken(folder) || (is_folder(folder) && folder_entries(folder).empty())) return io::Standing::refused;
  if (!holds_weights_alone(folder)) {
    throw UsageError(folder.string() + ": exists already and holds something else than " +
                     std::string(io::kConfigFile) + " and " + std::string(io::kModelFile) +
                     " (and a tokenizer): --overwrite replaces only a folder of these; choose another path");
  }
  if (!overwrite) throw UsageError(folder.string() + ": exists already; --overwrite replaces it");
  return io::Standing::replaced;
}

TrainerState load_checkpoint(const fs::path& checkpoint, const models::ModelConfig& model, const RunParts& parts) {
  const TrainerState state = read_trainer_state(checkpoint / io::kTrainerFile);
  const auto load = [&](const fs::path& path, const std::vector<models::NamedTensor>& tensors) {
    load_part(path, model, checkpoint / io::kConfigFile, tensors);
  };
  load(checkpoint, models::named_values(parts.model.parameters()));
  load(checkpoint / io::kOptimFile, parts.optimizer.state());
  if (parts.average.kept()) load(checkpoint / io::kAverageFile, averaged_values(parts));
  parts.optimizer.set_applied_steps(state.applied_steps);
  return state;
}

WeightFiles WeightFiles::open(const fs::path& path) {
  WeightFiles weights{io::TensorFiles::open(path), ""};
  formats::check_version(weights.files);
  const auto found = weights.files.metadata().find("residual");
  if (found != weights.files.metadata().end()) weights.scheme = found->second;
  return weights;
}

RunConfig load_config(const fs::path& run_or_checkpoint) {
  return read_config_file((io::resolve_checkpoint(run_or_checkpoint) / io::kConfigFile).string());
}

bool keeps_average(const fs::path& run_or_checkpoint) {
  const fs::path checkpoint = io::resolve_checkpoint(run_or_checkpoint);
  return is_there(checkpoint / io::kAverageFile) ||
         (is_there(checkpoint / io::kTrainerFile) && load_config(checkpoint).train.ema > 0);
}

LoadedModel load_model(const fs::path& run_or_checkpoint, Weights weights, at::ScalarType dtype, int64_t least_context,
                       std::optional<at::Device> device) {
  LoadedModel loaded;
  loaded.checkpoint = io::resolve_checkpoint(run_or_checkpoint);
  const fs::path config_file = loaded.checkpoint / io::kConfigFile;
  loaded.config = read_config_file(config_file.string());
  const fs::path file = weights == Weights::averaged ? loaded.checkpoint / io::kAverageFile : loaded.checkpoint;
  if (!is_there(file)) {
    throw DataError(file.string() + (loaded.config.train.ema > 0
                                         ? ": missing, although the run kept averaged weights"
                                         : ": missing: the run kept no averaged weights (train.ema)"));
  }
  const WeightFiles stored = WeightFiles::open(file);
  formats::check_saved_model(stored.files, config::print(loaded.config.model), config_file.string());
  if (is_there(loaded.checkpoint / io::kTrainerFile)) {
    const TrainerState state = read_trainer_state(loaded.checkpoint / io::kTrainerFile);
    check_unchanged(loaded.config, state, config_file);
    loaded.step = state.step;
    loaded.tokenizer = state.tokenizer;
  }
  models::ModelConfig shape = loaded.config.model;
  if (shape.positions == models::Positions::rope) shape.context = std::max(shape.context, least_context);
  loaded.model = models::make_model(shape, loaded.config.init, loaded.config.train.seed,
                                    device ? *device : device_of(loaded.config.engine), dtype);
  formats::load_weights(stored.files, shape, models::named_values(loaded.model->parameters()));
  return loaded;
}

}  // namespace siamese::train

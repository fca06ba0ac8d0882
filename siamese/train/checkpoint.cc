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
#include "siamese/train/checkpoint_shards.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/device.h"
#include "siamese/train/residual_warmup.h"
#include "siamese/train/run_folder.h"
#include "siamese/train/state_pieces.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

// The tensors of a checkpoint are all saved under one model.
io::TensorFiles open_part(const fs::path& path, const models::ModelConfig& model, const fs::path& config_file) {
  io::TensorFiles files = io::TensorFiles::open(path);
  formats::check_version(files);
  formats::check_saved_model(files, config::print(model), config_file.string());
  return files;
}

std::map<std::string, std::string> weights_metadata(const RunConfig& config) {
  return formats::metadata_of(formats::Layout::siamese, config.model);
}

void write_beside_weights(const fs::path& folder, const std::string& config, const RunTokenizer& tokenizer) {
  io::write_file_atomic(folder / io::kConfigFile, config);
  if (tokenizer.there()) io::write_file_atomic(folder / io::kTokenizerFile, tokenizer.json);
}

bool divides_weights(const RunParts& parts) { return parts.weights != nullptr && parts.weights->any_is_divided(); }

// Whole tensors, in the places that all ranks' parts are gathered in, or that a file is loaded into.
std::vector<models::NamedTensor> whole(const RunParts& parts, std::vector<models::NamedTensor> tensors) {
  return divides_weights(parts) ? parts.weights->in_places(std::move(tensors)) : tensors;
}

std::vector<models::NamedTensor> weights_of(const RunParts& parts) {
  return whole(parts, models::named_values(parts.model.parameters()));
}

// The averages with the buffers: the file stands in for model.safetensors.
std::vector<models::NamedTensor> averages_of(const RunParts& parts) {
  std::vector<models::NamedTensor> tensors = whole(parts, parts.average.state());
  for (const auto& [name, value] : parts.model.parameters().buffers()) tensors.push_back({name, value, true});
  return tensors;
}

// What this process writes of a checkpoint's tensors: all of them, or its part. The weights are gathered last: they
// stay where they are, and what was gathered in the same places before is copied.
Shards shards_of(const RunParts& parts, const comm::Group* group) {
  Shards averages(group), shards(group);
  if (parts.average.kept()) {
    if (divides_weights(parts)) parts.weights->gather(parts.average.held());
    averages.add_share(io::kAverageFile, averages_of(parts));
    if (divides_weights(parts)) averages.copy_or_fail_later();
  }
  if (divides_weights(parts)) parts.weights->gather_weights();
  shards.add_share(io::kModelFile, weights_of(parts));
  if (parts.weights != nullptr) {
    shards.add_own(io::kOptimFile, parts.optimizer.state());
  } else {
    shards.add_share(io::kOptimFile, parts.optimizer.state());
  }
  shards.append(std::move(averages));
  return shards;
}

// The others hear where the folder is, or that there is none.
std::unique_ptr<io::AtomicDirectory> told_to_all(comm::Group& group,
                                                 const std::function<std::unique_ptr<io::AtomicDirectory>()>& make) {
  std::unique_ptr<io::AtomicDirectory> folder;
  try {
    folder = make();
  } catch (...) {
    comm::from_leader(group, std::string());
    throw;
  }
  comm::from_leader(group, fs::absolute(folder->path()).string());
  return folder;
}

bool holds_weights_alone(const fs::path& folder) {
  return is_folder(folder) && io::missing_files(folder, io::CheckpointUse::weights).empty() &&
         folder_entries(folder).size() == (is_file(folder / io::kTokenizerFile) ? 3 : 2);
}

}  // namespace

CheckpointContent::CheckpointContent(const RunConfig& run_config, const RunParts& parts, const TrainerState& run_state,
                                     const comm::Group* group)
    : config(run_config),
      tokenizer(parts.tokenizer),
      state(run_state),
      shards(shards_of(parts, group)),
      averaged(parts.average.kept()),
      by_ranks(group != nullptr) {}

std::vector<ShardFile> CheckpointContent::write_shards(const fs::path& folder) const {
  return shards.write(folder, weights_metadata(config));
}

std::unique_ptr<io::AtomicDirectory> open_checkpoint(const fs::path& run_dir, int64_t step, comm::Group* group) {
  const std::string name = io::checkpoint_name(step);
  const auto make_folder = [&] {
    check_only_checkpoint(run_dir / name);
    return std::make_unique<io::AtomicDirectory>(run_dir / name);
  };
  return group == nullptr ? make_folder() : told_to_all(*group, make_folder);
}

fs::path told_folder(comm::Group& group) { return comm::from_leader(group, std::string()); }

fs::path complete_checkpoint(const fs::path& run_dir, io::AtomicDirectory& folder, const CheckpointContent& content,
                             const std::vector<ShardFile>& files) {
  std::vector<std::string> further_files = write_indices(folder.path(), files);
  write_beside_weights(folder.path(), config_text(content.config), content.tokenizer);
  if (content.tokenizer.there()) further_files.emplace_back(io::kTokenizerFile);
  if (content.averaged) {
    further_files.push_back(content.by_ranks ? io::index_name(io::kAverageFile) : std::string(io::kAverageFile));
  }
  io::write_file_atomic(folder.path() / io::kTrainerFile, to_json(content.state, further_files));
  folder.commit();
  const std::string name = io::checkpoint_name(content.state.step);
  io::write_latest(run_dir, name);
  return run_dir / name;
}

fs::path save_checkpoint(const fs::path& run_dir, const RunConfig& config, const RunParts& parts,
                         const TrainerState& state, comm::Group* group) {
  const auto folder = open_checkpoint(run_dir, state.step, group);
  const CheckpointContent content(config, parts, state, group);
  const auto write = [&] { return content.write_shards(folder->path()); };
  return complete_checkpoint(run_dir, *folder, content, group == nullptr ? write() : written_by_all(*group, write));
}

void help_save_checkpoint(const RunConfig& config, const RunParts& parts, comm::Group& group) {
  const fs::path folder = told_folder(group);
  if (folder.empty()) return;
  const CheckpointContent content(config, parts, {}, &group);
  try {
    written_by_all(group, [&] { return content.write_shards(folder); });
  } catch (const comm::Unanswered&) {
    throw;
  } catch (const SystemError&) {
  }
}

void save_weights(const fs::path& folder, const RunConfig& config, const models::Model& model, bool overwrite,
                  const RunTokenizer& tokenizer) {
  io::make_directory(fs::absolute(folder / "..").lexically_normal());
  io::AtomicDirectory aside(folder);
  write_beside_weights(aside.path(), weights_config_text(config), tokenizer);
  models::save_tensors(aside.path() / io::kModelFile, models::named_values(model.parameters()),
                       weights_metadata(config));
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
  const auto open = [&](std::string_view file) {
    return open_part(io::file_or_index(checkpoint, file), model, checkpoint / io::kConfigFile);
  };
  models::load_tensors(open(io::kModelFile), weights_of(parts));
  if (divides_weights(parts)) parts.weights->take_weights();
  load_pieces(open(io::kOptimFile), parts.optimizer.state(), parts.weights == nullptr);
  if (parts.average.kept()) {
    models::load_tensors(open(io::kAverageFile), averages_of(parts));
    if (divides_weights(parts)) parts.weights->keep(parts.average.held());
  }
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
  return is_there(io::file_or_index(checkpoint, io::kAverageFile)) ||
         (is_there(checkpoint / io::kTrainerFile) && load_config(checkpoint).train.ema > 0);
}

LoadedModel load_model(const fs::path& run_or_checkpoint, Weights weights, at::ScalarType dtype, int64_t least_context,
                       std::optional<at::Device> device) {
  LoadedModel loaded;
  loaded.checkpoint = io::resolve_checkpoint(run_or_checkpoint);
  const fs::path config_file = loaded.checkpoint / io::kConfigFile;
  loaded.config = read_config_file(config_file.string());
  const fs::path file =
      io::file_or_index(loaded.checkpoint, weights == Weights::averaged ? io::kAverageFile : io::kModelFile);
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
    loaded.branch_scales = branch_scales(loaded.config, state.step);
  }
  models::ModelConfig shape = loaded.config.model;
  shape.branch_scales = loaded.branch_scales;
  if (shape.positions == models::Positions::rope) shape.context = std::max(shape.context, least_context);
  loaded.model = models::make_model(shape, loaded.config.init, loaded.config.train.seed,
                                    device ? *device : device_of(loaded.config.engine), dtype);
  formats::load_weights(stored.files, shape, models::named_values(loaded.model->parameters()));
  return loaded;
}

}  // namespace siamese::train

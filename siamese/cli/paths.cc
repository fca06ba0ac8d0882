#include "siamese/cli/paths.h"

#include <algorithm>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/fields.h"
#include "siamese/config/load.h"
#include "siamese/config/yaml.h"
#include "siamese/data/files.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/tensor_files.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/config_origin.h"

namespace siamese::cli {
namespace fs = std::filesystem;

std::vector<fs::path> config_folders() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> folders;
  for (const fs::path& candidate :
       {fs::path("configs"), binary / "../../configs", binary / "../share/siamese/configs"}) {
    if (!fs::is_directory(candidate, error)) continue;
    const fs::path folder = fs::canonical(candidate, error);
    if (!error && std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
  }
  return folders;
}

fs::path weights_path(const fs::path& path) {
  if (!is_folder(path) || io::has_tensor_files(path)) return path;
  return io::resolve_checkpoint(path);
}

bool is_sweep(const config::Value& value) {
  return value.find("variants") != nullptr || value.find("grid") != nullptr || value.find("sweep") != nullptr;
}

train::RunConfig load_run_config(const std::string& name_or_path, const std::vector<std::string>& overrides) {
  config::Value value = train::load_given(name_or_path, config_folders());
  for (const auto& assignment : overrides) config::apply_override(value, assignment);
  if (is_sweep(value)) {
    throw UsageError(name_or_path + ": is a sweep, not one run: siamese sweep " + name_or_path);
  }
  return train::read_config(value);
}

train::RunConfig load_stored_config(const std::string& run, const std::vector<std::string>& overrides,
                                    const std::vector<std::string>& allowed, const std::string& say) {
  train::RunConfig stored = train::load_config(run);
  // What the run named is looked for where the run did; what is named now, where the command is given.
  stored.data = data::located(stored.data);
  stored.eval.classifier = train::located(stored, stored.eval.classifier);
  stored.eval.tokenizer = train::located(stored, stored.eval.tokenizer);
  for (std::string& folder : stored.eval.tasks) folder = train::located(stored, folder);
  config::Value value = config::in_layer(config::print(stored), config::kStoredLayer);
  const auto overrides_any = [&](std::string_view beginning) {
    return std::any_of(overrides.begin(), overrides.end(),
                       [&](const auto& text) { return text.starts_with(beginning); });
  };
  if (overrides_any("train.batch=") && !train::is_given(stored, "train.micro_batch")) {
    config::erase_path(value, "train.micro_batch");
  }
  for (const auto& assignment : overrides) {
    if (std::none_of(allowed.begin(), allowed.end(), [&](const auto& key) { return assignment.starts_with(key); })) {
      throw UsageError("override '" + assignment + "': expected " + say + ": the rest belongs to the checkpoint");
    }
    config::apply_override(value, assignment);
  }
  train::RunConfig config = train::read_config(value);
  config.given = stored.given;
  if (!overrides_any("data.")) config.data.base = stored.data.base;
  return config;
}

std::vector<std::string> with_held_out(std::vector<std::string> overrides, const std::vector<std::string>& files) {
  if (files.empty()) return overrides;
  config::Value value;
  config::set_path(value, "data.val", config::print(files));
  for (const auto& [key, text] : config::flatten(value)) overrides.push_back(key + "=" + text);
  return overrides;
}

}  // namespace siamese::cli

#include "siamese/train/config_origin.h"

#include <algorithm>

#include "siamese/base/check.h"
#include "siamese/config/load.h"
#include "siamese/data/files.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/run_folder.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

// Keys that have a value of their own only when somebody gives one: 0 or auto is filled in from others.
constexpr std::string_view kDerivedKeys[] = {"model.kv_heads", "model.ffn_width", "model.positions",  "model.vocab",
                                             "model.channels", "model.classes",   "train.micro_batch"};

bool holds_key(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

template <class Use>
void for_each_leaf(config::Value& value, const std::string& path, Use use) {
  if (!value.is_map()) return use(path, value);
  for (auto& [key, child] : value.entries) for_each_leaf(child, path.empty() ? key : path + "." + key, use);
}

}  // namespace

std::vector<std::string> given_keys(const config::Value& value) {
  std::vector<std::string> keys;
  config::Value copy = value;
  for_each_leaf(copy, "", [&](const std::string& path, const config::Value& leaf) {
    if (leaf.layer > config::kStoredLayer && leaf.kind != config::Value::Kind::null) keys.push_back(path);
  });
  return keys;
}

std::optional<runs::RunInfo> run_of(const fs::path& config_file) {
  if (config_file.filename() != io::kConfigFile) return std::nullopt;
  const fs::path folder = fs::absolute(config_file).lexically_normal().parent_path();
  for (const fs::path& dir : {folder, folder.parent_path()}) {
    if (dir != folder && !io::checkpoint_step(folder.filename().string())) break;
    try {
      runs::Notes notes;
      if (is_run(dir)) return runs::read_run_file(dir, &notes);
    } catch (const Error&) {  // whoever needs run.json itself says what is wrong with it
    }
  }
  return std::nullopt;
}

void take_origin(RunConfig& config, const fs::path& config_file) {
  const auto run = run_of(config_file);
  config.given = run && run->says_set ? std::optional(run->set) : std::nullopt;
  if (!run) return;
  std::error_code error;
  config.data.base = fs::equivalent(run->folder, fs::current_path(error), error) ? "" : run->folder;
}

bool is_given(const RunConfig& config, std::string_view key) { return !config.given || holds_key(*config.given, key); }

config::Value load_given(const std::string& name_or_path, const std::vector<fs::path>& folders) {
  config::Value value = config::load(name_or_path, {}, folders);
  const auto run = run_of(config::find_config(name_or_path, folders));
  if (!run || !run->says_set) return value;
  for_each_leaf(value, "", [&](const std::string& path, config::Value& leaf) {
    if (!holds_key(run->set, path)) leaf.layer = config::kStoredLayer;
  });
  for (const std::string_view key : kDerivedKeys) {
    if (!holds_key(run->set, key)) config::erase_path(value, key);
  }
  return value;
}

std::string located(const RunConfig& config, const std::string& path) {
  return data::found_below(config.data.base, path);
}

}  // namespace siamese::train

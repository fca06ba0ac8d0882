// What config.yaml cannot say of itself, because it is resolved: which of its values somebody chose, and from which
// folder its relative paths start. run.json beside it does (runs/run_info.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/config/value.h"
#include "siamese/runs/run_info.h"
#include "siamese/train/config.h"

namespace siamese::train {

// The keys of a tree that somebody gave, in a file, a recipe or on the command line; not those that a run stored.
std::vector<std::string> given_keys(const config::Value& value);

// run.json of the run that a config.yaml belongs to, its own or that of one of its checkpoints; nullopt when there is
// none of ours.
std::optional<runs::RunInfo> run_of(const std::filesystem::path& config_file);

// Takes `given` and data.base from there, if it says. A folder that this process works in needs no base.
void take_origin(RunConfig& config, const std::filesystem::path& config_file);

// Whether somebody gave this key; also when that is not known.
bool is_given(const RunConfig& config, std::string_view key);

// A recipe or file as config::load gives it, before any override. Of a run's own config.yaml the values that were
// derived from others (model.kv_heads, model.ffn_width, train.micro_batch, ...) and that nobody set are left out, so
// that they follow whatever is overridden.
config::Value load_given(const std::string& name_or_path, const std::vector<std::filesystem::path>& folders);

// A path of the config as this process finds it: below data.base when it is there, else as it is.
std::string located(const RunConfig& config, const std::string& path);

}  // namespace siamese::train

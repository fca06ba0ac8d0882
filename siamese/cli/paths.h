// Where shipped recipes are found, and a run config from the command line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "siamese/train/config.h"

namespace siamese::cli {

// ./configs, then the source tree this binary was built in, then the installed share/siamese/configs.
std::vector<std::filesystem::path> config_folders();

// The weights that a path means: a file, an index, a folder with either, or a run's newest checkpoint.
std::filesystem::path weights_path(const std::filesystem::path& path);

bool is_sweep(const config::Value& value);

// The config a verb was given: a recipe or file, and overrides. UsageError for a sweep.
train::RunConfig load_run_config(const std::string& name_or_path, const std::vector<std::string>& overrides);

// The config of a run's latest checkpoint, or of a checkpoint, with overrides for keys that do not belong to it.
// `allowed`: how these begin; `say`: the same for the error that names any other.
train::RunConfig load_stored_config(const std::string& run, const std::vector<std::string>& overrides,
                                    const std::vector<std::string>& allowed = {"engine."},
                                    const std::string& say = "keys of engine");

// The overrides, and one that names these files of held-out data (--data), if any.
std::vector<std::string> with_held_out(std::vector<std::string> overrides, const std::vector<std::string>& files);

}  // namespace siamese::cli

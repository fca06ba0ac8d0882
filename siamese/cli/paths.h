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

}  // namespace siamese::cli

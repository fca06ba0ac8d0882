// From the command line to one tree: preset < file < overrides.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "siamese/config/value.h"

namespace siamese::config {

// `name_or_path`: a YAML file, or the name of one without ".yaml" in one of `folders` (the shipped recipes) or in the
// folder `published` of one.
// A file may start from another by a top-level `preset: NAME`; the name is looked up beside the file, then in
// `folders`.
Value load(const std::string& name_or_path, const std::vector<std::string>& overrides,
           const std::vector<std::filesystem::path>& folders);

// The file that `name_or_path` means; UsageError naming the nearest recipe when there is none.
std::filesystem::path find_config(const std::string& name_or_path, const std::vector<std::filesystem::path>& folders);

// Names of all recipes in `folders` (relative, without ".yaml" and without "published/"), sorted.
std::vector<std::string> list_configs(const std::vector<std::filesystem::path>& folders);

}  // namespace siamese::config

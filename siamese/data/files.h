// Which files a `data.train` or `data.val` list means.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "siamese/data/config.h"

namespace siamese::data {

// A relative path below `base` when something is there, or a match of a glob; else as it is.
std::string found_below(const std::string& base, const std::string& path);
// The config with data.train and data.val as they are found so.
DataConfig located(DataConfig config);
// ", looked for in A and B" for a relative path, which may lie in either; "" for an absolute one.
std::string looked_for(const std::string& base, const std::string& path);

// Each entry: a file; a folder (all files in it and below, hidden ones left out); else a glob ("shards/*.bin").
// Files of a folder or glob are sorted by path. DataError naming `key`, the entry and where
// it was looked for when it means no file.
std::vector<std::filesystem::path> expand_files(const std::string& key, const std::vector<std::string>& entries,
                                                const std::string& base = "");
// DataError when a folder that `config` names is not there: idx, cifar and folder read one each.
void check_folders(const DataConfig& config);

// UsageError when a file is in both lists: it would be trained on and then counted as unseen.
void check_disjoint(const std::vector<std::filesystem::path>& train, const std::vector<std::filesystem::path>& val);

}  // namespace siamese::data

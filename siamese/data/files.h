// Which files a `data.train` or `data.val` list means.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace siamese::data {

// Each entry: a file; a folder (all files in it and below, hidden ones left out); else a glob ("shards/*.bin").
// Files of a folder or glob are sorted by path. DataError naming `key` and the entry when it means no file.
std::vector<std::filesystem::path> expand_files(const std::string& key, const std::vector<std::string>& entries);

// UsageError when a file is in both lists: it would be trained on and then counted as unseen.
void check_disjoint(const std::vector<std::filesystem::path>& train, const std::vector<std::filesystem::path>& val);

}  // namespace siamese::data

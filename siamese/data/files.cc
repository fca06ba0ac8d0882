#include "siamese/data/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <glob.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (is_hidden(it->path())) {
      if (it->is_directory(ignored)) it.disable_recursion_pending();
    } else if (it->is_regular_file(ignored)) {
      files.push_back(it->path());
    }
  }
  if (error) throw DataError(fmt::format("cannot read folder '{}': {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

// The first folder that glob could not look into; its callback takes nothing else along.
struct Unread {
  std::string folder;
  int error = 0;
};
thread_local Unread unread;

int note_unread(const char* folder, int error) {
  if (unread.error == 0 && error != ENOENT && error != ENOTDIR) unread = {folder, error};
  return 0;  // other folders may have a match
}

std::vector<fs::path> files_matching(const std::string& pattern) {
  glob_t matches{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&matches, globfree);
  std::vector<fs::path> files;
  unread = {};
  const int failed = glob(pattern.c_str(), 0, note_unread, &matches);
  if (failed != 0 && unread.error != 0) {
    throw DataError(fmt::format("cannot read folder '{}': {}", unread.folder, std::strerror(unread.error)));
  }
  if (failed != 0) return files;
  for (size_t i = 0; i < matches.gl_pathc; ++i) {
    if (is_file(matches.gl_pathv[i])) files.emplace_back(matches.gl_pathv[i]);
  }
  std::sort(files.begin(), files.end());  // glob's own order follows the locale
  return files;
}

// What the recipes and sweeps that come with the program train on; the data themselves do not come with it.
constexpr std::string_view kFetched[] = {"books", "english", "fashion-mnist", "novels"};

std::string how_to_fetch(const std::string& entry) {
  for (const std::string_view name : kFetched) {
    const std::string folder = fmt::format("data/{}", name);
    if (entry != folder && !entry.starts_with(folder + "/")) continue;
    return fmt::format("; `python3 tools/real_data.py {}` fetches it", name);
  }
  return "";
}

}  // namespace

std::string found_below(const std::string& base, const std::string& path) {
  if (base.empty() || path.empty() || fs::path(path).is_absolute()) return path;
  const std::string there = (fs::path(base) / path).string();
  return is_there(there) || !files_matching(there).empty() ? there : path;
}

DataConfig located(DataConfig config) {
  for (auto* const list : {&config.train, &config.val}) {
    for (std::string& entry : *list) {
      const size_t name = config.mix.empty() ? 0 : entry.find('=') + 1;  // of a source, which comes before the path
      entry = entry.substr(0, name) + found_below(config.base, entry.substr(name));
    }
  }
  return config;
}

std::string looked_for(const std::string& base, const std::string& path) {
  if (fs::path(path).is_absolute()) return "";
  std::error_code error;
  const std::string here = fs::current_path(error).string();
  return ", looked for in " + (base.empty() ? here : base + " and " + here);
}

void check_folders(const DataConfig& config) {
  const bool one_folder =
      config.source == Source::idx || config.source == Source::cifar || config.source == Source::folder;
  if (!one_folder) return;
  for (const auto& [key, list] : {std::pair{"data.train", &config.train}, std::pair{"data.val", &config.val}}) {
    for (const std::string& entry : *list) {
      if (is_there(entry)) continue;
      throw DataError(fmt::format("{}: expected a folder, got nothing: no '{}'{}{}", key, entry,
                                  looked_for(config.base, entry), how_to_fetch(entry)));
    }
  }
}

std::vector<fs::path> expand_files(const std::string& key, const std::vector<std::string>& entries,
                                   const std::string& base) {
  std::vector<fs::path> files;
  for (const auto& entry : entries) {
    std::vector<fs::path> found;
    const PathKind kind = path_kind(entry);
    if (kind == PathKind::folder) {
      found = files_below(entry);
      if (found.empty()) throw DataError(fmt::format("{}: no files in folder '{}'", key, entry));
    } else if (kind != PathKind::missing) {
      found = {entry};
    } else {
      found = files_matching(entry);
      if (found.empty()) {
        throw DataError(fmt::format("{}: no file, folder or match for '{}'{}{}", key, entry, looked_for(base, entry),
                                    how_to_fetch(entry)));
      }
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

void check_disjoint(const std::vector<fs::path>& train, const std::vector<fs::path>& val) {
  std::set<fs::path> seen;
  for (const auto& path : train) seen.insert(fs::weakly_canonical(path));
  for (const auto& path : val) {
    if (seen.contains(fs::weakly_canonical(path))) {
      throw UsageError(fmt::format("data.val: '{}' is also in data.train", path.string()));
    }
  }
}

}  // namespace siamese::data

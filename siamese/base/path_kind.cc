#include "siamese/base/path_kind.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <sys/stat.h>

#include "siamese/base/check.h"

namespace siamese {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot_read(const fs::path& path, const std::error_code& error) {
  throw DataError("cannot read '" + path.string() + "': " + error.message());
}

}  // namespace

PathKind path_kind(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return PathKind::missing;
    cannot_read(path, {errno, std::generic_category()});
  }
  if (S_ISREG(status.st_mode)) return PathKind::file;
  return S_ISDIR(status.st_mode) ? PathKind::folder : PathKind::other;
}

bool is_taken(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  cannot_read(path, {errno, std::generic_category()});
}

std::vector<fs::path> folder_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) cannot_read(folder, error);
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace siamese

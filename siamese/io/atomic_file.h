// Files and folders that are either the old or the new, never half of each: written aside as `<name>.tmp-<pid>` in the
// same folder, flushed to disk, then renamed. What cannot be written throws SystemError with the path and the
// system's reason, leaves the old content as it was and removes the temporary.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "siamese/io/file_handle.h"

namespace siamese::io {

// The whole file; DataError when it is missing, not a regular file or unreadable.
std::string read_file(const std::filesystem::path& path);

void write_file_atomic(const std::filesystem::path& path, std::string_view content);

// The same for content too large to hold at once: write() in pieces, then commit(). Destroyed without it, nothing
// changes.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path final_path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  std::filesystem::path final_;
  std::filesystem::path temporary_;
  FileHandle file_;
};

// A folder that appears complete or not at all: write files below path(), then commit(). A folder already standing at
// the final path is replaced, in one exchange where the system has one.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path final_path);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path final_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

// Removes a folder so that a kill in between leaves nothing that looks like it: it is moved aside as a temporary first.
// SystemError when it cannot be moved or removed.
void remove_folder(const std::filesystem::path& folder);

// Removes what killed writers left directly in `folder` (`*.tmp-<pid>`), and puts back a folder that was moved away
// (`*.old-<pid>`) but never replaced. Leftovers of other processes that are still alive stay. Returns how many were
// tidied. `of`: only those of the file or folder of this name.
int remove_stale_temporaries(const std::filesystem::path& folder, std::string_view of = "");

}  // namespace siamese::io

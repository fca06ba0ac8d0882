// Files and folders that are either the old or the new, never half of each: written aside in the same folder (aside.h),
// flushed to disk, then renamed. What cannot be written throws SystemError with the path and the system's reason,
// leaves the old content as it was and removes what was written aside. Whoever writes a name first tidies up what
// killed writers of the same name left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "siamese/io/aside.h"

namespace siamese::io {

// The whole file; DataError when it is missing, not a regular file or unreadable.
std::string read_file(const std::filesystem::path& path);

// The folder and those it lies in, where they are not there yet; SystemError when it cannot be made.
void make_directory(const std::filesystem::path& dir);

void write_file_atomic(const std::filesystem::path& path, std::string_view content);

// What becomes of a file or folder that stands at the final path: it is replaced, or it is refused (UsageError),
// however late it came there; an empty folder is nobody's.
enum class Standing { replaced, refused };

// The same for content too large to hold at once: write() in pieces, then commit(). Destroyed without it, nothing
// changes.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path final_path, Standing standing = Standing::replaced);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Puts other bytes in the place of some that were written.
  void rewrite(uint64_t offset, std::string_view text);
  void commit();

 private:
  std::filesystem::path final_;
  Standing standing_;
  AsideEntry aside_;
};

// A folder that appears complete or not at all: write files below path(), then commit(). A folder already standing at
// the final path is replaced in one exchange where the system has one.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path final_path);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return aside_.path; }
  void commit(Standing standing = Standing::replaced);

 private:
  std::filesystem::path put_in_place(Standing standing);  // returns where the old folder went, "" when there was none

  std::filesystem::path final_;
  AsideEntry aside_;
  bool committed_ = false;
};

// Removes a folder so that a kill in between leaves nothing that looks like it: it is moved aside first. SystemError
// when it cannot be moved or removed.
void remove_folder(const std::filesystem::path& folder);

}  // namespace siamese::io

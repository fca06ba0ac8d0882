// The few system calls this room needs on an open file, with interrupted and short calls finished.
#pragma once

#include <cstddef>
#include <filesystem>
#include <utility>

namespace siamese::io {

// Owns a file descriptor.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  ~FileHandle() { close(); }
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }

  bool valid() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int close();  // 0, or errno

 private:
  int descriptor_ = -1;
};

// All return 0 or errno.
int write_all(int descriptor, const void* data, size_t bytes);
int sync_to_disk(int descriptor);
int sync_to_disk(const std::filesystem::path& file_or_folder);
int try_lock(int descriptor);  // EWOULDBLOCK: another holds it

// Whether the open file or folder is the one that stands at `path` now.
bool is_at(int descriptor, const std::filesystem::path& path);

// The folder that holds `path`: "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

// Opened to read; DataError when it is missing, unreadable or not a regular file. Its size goes to `bytes`.
FileHandle open_regular_file(const std::filesystem::path& path, size_t& bytes);

}  // namespace siamese::io

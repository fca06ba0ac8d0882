#include "siamese/io/file_handle.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

int FileHandle::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  return descriptor >= 0 && ::close(descriptor) != 0 ? errno : 0;
}

int write_all(int descriptor, const void* data, size_t bytes) {
  constexpr size_t kLargestCall = size_t{1} << 30;  // some systems refuse 2 GiB at once
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, next, std::min(bytes, kLargestCall));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    next += written;
    bytes -= static_cast<size_t>(written);
  }
  return 0;
}

int sync_to_disk(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno == EINTR) continue;
    // Some file systems and devices have nothing to sync and say so.
    return errno == EINVAL || errno == ENOTSUP ? 0 : errno;
  }
  return 0;
}

int sync_to_disk(const std::filesystem::path& file_or_folder) {
  FileHandle handle(::open(file_or_folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (!handle.valid()) return errno;
  return sync_to_disk(handle.get());
}

int try_lock(int descriptor) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool is_at(int descriptor, const std::filesystem::path& path) {
  struct stat open {
  }, standing{};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &standing) == 0 && open.st_dev == standing.st_dev &&
         open.st_ino == standing.st_ino;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

FileHandle open_regular_file(const std::filesystem::path& path, size_t& bytes) {
  // Not blocking: a pipe in the file's place must be an error, not a wait for its writer.
  FileHandle handle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!handle.valid()) throw_read_error(path, errno);
  struct stat status {};
  if (::fstat(handle.get(), &status) != 0) throw_read_error(path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw DataError(fmt::format("cannot read '{}': expected a regular file, got {}", path.string(),
                                S_ISDIR(status.st_mode) ? "a folder" : "a special file"));
  }
  bytes = static_cast<size_t>(status.st_size);
  return handle;
}

}  // namespace siamese::io

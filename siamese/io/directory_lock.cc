#include "siamese/io/directory_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace {

// 0, or errno.
int lock(int descriptor, DirectoryLock::WhenHeld when_held) {
  if (when_held == DirectoryLock::WhenHeld::refuse) return try_lock(descriptor);
  while (flock(descriptor, LOCK_EX) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, WhenHeld when_held) {
  constexpr int kMostTries = 16;
  for (int tries = 0; tries < kMostTries; ++tries) {
    directory_ = FileHandle(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory_.valid()) throw_read_error(directory, errno);
    const int error = lock(directory_.get(), when_held);
    if (error == EWOULDBLOCK) throw UsageError(directory.string() + ": another process is writing this run");
    if (error != 0) throw_system_error("lock", directory, error);
    if (is_at(directory_.get(), directory)) return;  // one that was replaced meanwhile is locked by nobody
  }
  throw_system_error("lock", directory, EBUSY);
}

}  // namespace siamese::io

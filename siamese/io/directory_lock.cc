#include "siamese/io/directory_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, WhenHeld when_held)
    : directory_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!directory_.valid()) throw_read_error(directory, errno);
  const int mode = LOCK_EX | (when_held == WhenHeld::refuse ? LOCK_NB : 0);
  int result = 0;
  do {
    result = flock(directory_.get(), mode);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  if (errno == EWOULDBLOCK) throw UsageError(directory.string() + ": another process is writing this run");
  throw_system_error("lock", directory, errno);
}

}  // namespace siamese::io

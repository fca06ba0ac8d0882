#include "siamese/io/directory_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : directory_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!directory_.valid()) throw_read_error(directory, errno);
  if (flock(directory_.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) throw UsageError(directory.string() + ": another process is writing this run");
  throw_system_error("lock", directory, errno);
}

}  // namespace siamese::io

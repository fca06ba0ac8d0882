#include "siamese/io/file_hash.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "siamese/io/checksum.h"
#include "siamese/io/file_handle.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

// Bytes [offset, offset + count) as far as they are there: read, not mapped, so that a file that shrinks is no crash.
void add_range(const FileHandle& file, const std::filesystem::path& path, uint64_t offset, uint64_t count,
               std::vector<std::byte>& buffer, Checksum& sum) {
  while (count > 0) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(count, buffer.size()));
    const ssize_t got = ::pread(file.get(), buffer.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_read_error(path, errno);
    if (got == 0) return;
    sum.add(std::span(buffer.data(), static_cast<size_t>(got)));
    offset += static_cast<uint64_t>(got);
    count -= static_cast<uint64_t>(got);
  }
}

}  // namespace

FileHash hash_file(const std::filesystem::path& path, uint64_t whole) {
  size_t bytes = 0;
  const FileHandle file = open_regular_file(path, bytes);
  const uint64_t blocks = std::clamp<uint64_t>(bytes / kMiB, 2, 64);
  const uint64_t block = bytes > 64 * kMiB ? 64 * kKiB : 4 * kKiB;
  Checksum sum;
  std::vector<std::byte> buffer(std::min<size_t>(kChecksumBlock, std::max<size_t>(bytes, 1)));
  if (bytes <= std::max(whole, blocks * block)) {
    add_range(file, path, 0, bytes, buffer, sum);
  } else {
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);  // nothing around a block is wanted
    for (uint64_t i = 0; i < blocks; ++i) {
      add_range(file, path, i * (bytes - block) / (blocks - 1), block, buffer, sum);
    }
  }
  return {bytes, sum.value()};
}

}  // namespace siamese::io

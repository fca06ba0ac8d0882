// Bytes as a file without a disk, for readers that take a path.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "fuzz/properties.h"
#include <sys/mman.h>
#include <unistd.h>

namespace siamese::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : descriptor_(::memfd_create("bytes", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written <= 0) throw std::runtime_error("a file in memory cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace siamese::fuzz

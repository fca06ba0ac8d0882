// One writer per run directory: an advisory lock on the directory itself, released when the process ends, however.
#pragma once

#include <filesystem>

#include "siamese/io/file_handle.h"

namespace siamese::io {

class DirectoryLock {
 public:
  // UsageError when another process holds it.
  explicit DirectoryLock(const std::filesystem::path& directory);

 private:
  FileHandle directory_;
};

}  // namespace siamese::io

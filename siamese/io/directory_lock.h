// One writer per directory: an advisory lock on the directory itself, released when the process ends, however.
#pragma once

#include <filesystem>

#include "siamese/io/file_handle.h"

namespace siamese::io {

class DirectoryLock {
 public:
  // A run is written for hours: a second writer is refused. A record is written for a moment: its writers queue.
  enum class WhenHeld { refuse, wait };

  // UsageError when another process holds it and that is to be refused.
  explicit DirectoryLock(const std::filesystem::path& directory, WhenHeld when_held = WhenHeld::refuse);

 private:
  FileHandle directory_;
};

}  // namespace siamese::io

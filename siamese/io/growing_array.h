// An NPY of one dimension that is written over hours: it grows in NAME.partial, can be cut back to a length that is
// known to be good and go on from there, and gets its name when it is finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "siamese/io/dtype.h"
#include "siamese/io/file_handle.h"

namespace siamese::io {

class GrowingArray {
 public:
  // Goes on after the first `count` elements of what an earlier process wrote, whether that was finished or not; 0
  // starts anew. DataError when fewer are there, SystemError when it cannot be written.
  GrowingArray(std::filesystem::path path, DType dtype, uint64_t count);

  void append(std::span<const std::byte> elements);  // a whole number of them
  void sync();                                       // all that was appended is on the disk
  void finish();                                     // header, sync, rename; nothing can be appended afterwards

  uint64_t count() const { return count_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void flush();

  std::filesystem::path path_;
  std::filesystem::path partial_;
  DType dtype_;
  FileHandle file_;
  uint64_t count_;
  std::string waiting_;  // elements that are not in the file yet
};

}  // namespace siamese::io

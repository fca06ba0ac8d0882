// Bytes in order, from a plain, gzip (.gz) or Zstandard (.zst) file, told apart by their first bytes, or from standard
// input. Files that were compressed one after the other into one count as one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace siamese::io {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // At least one byte, or 0 at the end. DataError when the file cannot be read, is damaged or ends too early.
  virtual size_t read(std::span<char> into) = 0;
  // Bytes of the file that were read so far, as they lie there: for progress.
  virtual uint64_t consumed() const = 0;
};

// DataError when it is missing or not a regular file.
std::unique_ptr<ByteStream> open_bytes(const std::filesystem::path& path);
std::unique_ptr<ByteStream> standard_input();

}  // namespace siamese::io

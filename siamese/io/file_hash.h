// What a file holds, as a number: to notice a change, not to prove that there is none.
#pragma once

#include <cstdint>
#include <filesystem>

namespace siamese::io {

struct FileHash {
  uint64_t bytes = 0;
  uint64_t hash = 0;  // io/checksum.h

  bool operator==(const FileHash&) const = default;
};

// Of all bytes of a file of at most `whole` bytes. Of a larger one of n blocks, evenly spread, the first and the last
// among them: n = its size in MiB, at least 2 and at most 64; a block has 4 KiB, in a file past 64 MiB 64 KiB. (A file
// of no more than its blocks is hashed whole.) DataError when it cannot be read.
FileHash hash_file(const std::filesystem::path& path, uint64_t whole);

}  // namespace siamese::io

// Where the documents of a token file begin: DIR/documents/SIDE/NAME.npy of DIR/SIDE/NAME.npy, as `siamese prepare`
// writes it: uint64, the first token of each document, then the length of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "siamese/io/npy.h"

namespace siamese::data {

class DocumentIndex {
 public:
  // Of a file of so many tokens. DataError when there is no index, or it is not of this file.
  DocumentIndex(const std::filesystem::path& token_file, int64_t tokens);

  // Where documents begin in (begin, end), ascending. DataError when the index is not in order there.
  std::vector<int64_t> begins_between(int64_t begin, int64_t end) const;

 private:
  uint64_t at(int64_t i) const;

  io::NpyFile file_;
  std::string name_;
  int64_t count_;
};

}  // namespace siamese::data

// IDX files (MNIST and its relatives): big-endian [u16 0][u8 type][u8 dimensions][u32 sizes...][data], mapped. Only
// type 0x08, unsigned bytes, occurs in image sets; others, wrong sizes and gzipped files are a DataError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "siamese/io/mapped_file.h"

namespace siamese::io {

class IdxFile {
 public:
  static IdxFile open(const std::filesystem::path& path);

  const std::vector<int64_t>& shape() const { return shape_; }
  std::span<const std::byte> data() const { return file_.bytes().subspan(4 + 4 * shape_.size()); }

 private:
  IdxFile(MappedFile file, std::vector<int64_t> shape) : file_(std::move(file)), shape_(std::move(shape)) {}

  MappedFile file_;
  std::vector<int64_t> shape_;
};

}  // namespace siamese::io

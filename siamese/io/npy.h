// NPY 1.0, 2.0, 3.0: "\x93NUMPY", version, header length (u16; u32 from 2.0), a Python dict literal, row-major data.
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// Read strictly: little-endian u1 u2 u4 u8 i1 i2 i4 i8 f4 f8, C order, data exactly as long as dtype x shape.
// DataError with the file and the byte offset otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "siamese/io/dtype.h"
#include "siamese/io/mapped_file.h"

namespace siamese::io {

struct NpyView {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  size_t offset = 0;                // where the data begins in the file
  std::span<const std::byte> data;  // may be unaligned in files from other writers: copy with memcpy
};

bool has_npy_magic(std::span<const std::byte> bytes);

// The view points into `bytes`; `name` is what errors call it.
NpyView parse_npy(std::span<const std::byte> bytes, std::string_view name);

class NpyFile {
 public:
  static NpyFile open(const std::filesystem::path& path);

  const NpyView& view() const { return view_; }

 private:
  NpyFile(MappedFile file, NpyView view);

  MappedFile file_;
  NpyView view_;
};

}  // namespace siamese::io

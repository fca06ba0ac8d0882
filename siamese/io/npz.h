// NPZ as numpy.savez writes it: a ZIP archive of NPY files (npy.h), stored as they are. One array here, in the form
// that the usual scripts for FID read: `arr_0`, uint8 [n, height, width, 3].
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace siamese::io {

// The header of an NPY 1.0 file of bytes (uint8, row-major) of this shape; the data follows it.
std::string npy_header(const std::vector<int64_t>& shape);

// `name` without ".npy". Written aside and renamed; past 4 GB with the 64-bit fields of ZIP. UsageError unless `bytes`
// has as many as `shape` says.
void write_npz(const std::filesystem::path& path, std::string_view name, const std::vector<int64_t>& shape,
               std::span<const uint8_t> bytes);

}  // namespace siamese::io

// PNG files. Any PNG is read as 8-bit grey or RGB: palettes are resolved, 16 bits cut to 8, small depths spread over
// 0 to 255, transparency laid over white. What is truncated, corrupt or larger than kMostPixels is a DataError with
// the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "siamese/io/image.h"

namespace siamese::io {

bool is_png(std::span<const std::byte> bytes);

// `name` is what errors call the bytes.
Image decode_png(std::span<const std::byte> bytes, const std::string& name);
std::string encode_png(const Image& image);

Image read_png(const std::filesystem::path& path);
// Written aside and renamed.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace siamese::io

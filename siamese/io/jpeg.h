// JPEG files, read as 8-bit grey or RGB. CMYK, as some print software writes, is refused; so is what is truncated,
// corrupt or larger than kMostPixels: a DataError with the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "siamese/io/image.h"

namespace siamese::io {

bool is_jpeg(std::span<const std::byte> bytes);

// `name` is what errors call the bytes.
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name);

Image read_jpeg(const std::filesystem::path& path);

}  // namespace siamese::io

// Image files of any kind we read, told by their first bytes, not by their names.
#pragma once

#include <filesystem>

#include "siamese/io/image.h"

namespace siamese::io {

// Whether it opens as PNG or JPEG; false also for what cannot be read.
bool is_image_file(const std::filesystem::path& path);

Image read_image(const std::filesystem::path& path);

}  // namespace siamese::io

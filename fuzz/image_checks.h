// What holds for any decoded image.
#pragma once

#include "fuzz/contract.h"

#include "siamese/io/image.h"

namespace siamese::fuzz {

inline void require_sound(const io::Image& image) {
  require(image.width > 0 && image.height > 0, "an image has pixels");
  require(image.width * image.height <= io::kMostPixels, "an image has at most kMostPixels");
  require(image.channels == 1 || image.channels == 3, "an image is grey or RGB");
  require(image.pixels.size() == static_cast<size_t>(image.width * image.height * image.channels),
          "the values are width x height x channels");
}

}  // namespace siamese::fuzz

// Eight-bit pixels to what a model takes: grey or colour, planar floats.
#pragma once

#include <array>
#include <span>

#include "siamese/data/config.h"
#include "siamese/io/image.h"

namespace siamese::data {

// Colour to grey by the weights of ITU-R 601 (0.299, 0.587, 0.114), grey to colour by repeating it.
io::Image with_channels(const io::Image& image, int64_t channels);

// (v - mean) / std for v of 0 to 1, by channel. Grey takes the average of ImageNet's three.
class PixelScale {
 public:
  PixelScale(Normalize normalize, int64_t channels);
  // [height, width, channels] bytes -> [channels, height, width] floats.
  void to_floats(const io::Image& image, std::span<float> out) const;

 private:
  std::array<std::array<float, 256>, 3> table_{};
};

}  // namespace siamese::data

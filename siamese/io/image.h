// An 8-bit image in memory: rows from the top, pixels from the left, channels of a pixel side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace siamese::io {

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 0;         // 1 grey, 3 red green blue
  std::vector<uint8_t> pixels;  // [height, width, channels]

  Image() = default;
  Image(int64_t w, int64_t h, int64_t c, uint8_t value = 0)
      : width(w), height(h), channels(c), pixels(static_cast<size_t>(w * h * c), value) {}

  size_t offset(int64_t x, int64_t y) const { return static_cast<size_t>((y * width + x) * channels); }
  uint8_t* at(int64_t x, int64_t y) { return pixels.data() + offset(x, y); }
  const uint8_t* at(int64_t x, int64_t y) const { return pixels.data() + offset(x, y); }

  bool operator==(const Image&) const = default;
};

// Larger images are refused before memory is asked for.
inline constexpr int64_t kMostPixels = int64_t{1} << 28;

}  // namespace siamese::io

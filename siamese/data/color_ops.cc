#include "siamese/data/color_ops.h"

#include <algorithm>
#include <array>

namespace siamese::data {
namespace {

using Histogram = std::array<int64_t, 256>;

template <class Map>
io::Image mapped(const io::Image& image, Map map) {
  io::Image out = image;
  for (uint8_t& value : out.pixels) value = map(value);
  return out;
}

Histogram histogram_of(const io::Image& image, size_t channel) {
  Histogram counts{};
  for (size_t i = channel; i < image.pixels.size(); i += static_cast<size_t>(image.channels)) ++counts[image.pixels[i]];
  return counts;
}

// table_of(histogram) says what a channel's values become.
template <class TableOf>
io::Image by_channel(const io::Image& image, TableOf table_of) {
  io::Image out = image;
  for (size_t c = 0; c < static_cast<size_t>(image.channels); ++c) {
    const std::array<uint8_t, 256> table = table_of(histogram_of(image, c));
    for (size_t i = c; i < out.pixels.size(); i += static_cast<size_t>(image.channels)) {
      out.pixels[i] = table[out.pixels[i]];
    }
  }
  return out;
}

std::array<uint8_t, 256> identity_table() {
  std::array<uint8_t, 256> table{};
  for (size_t i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
  return table;
}

std::array<uint8_t, 256> contrast_table(const Histogram& counts) {
  auto table = identity_table();
  int low = 0;
  int high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  if (high <= low) return table;
  for (int i = 0; i < 256; ++i) {
    table[static_cast<size_t>(i)] = static_cast<uint8_t>(std::clamp((i - low) * 255 / (high - low), 0, 255));
  }
  return table;
}

std::array<uint8_t, 256> equalizing_table(const Histogram& counts) {
  auto table = identity_table();
  int64_t total = 0;
  int64_t last = 0;
  int levels = 0;
  for (const int64_t count : counts) {
    total += count;
    if (count > 0) {
      last = count;
      ++levels;
    }
  }
  const int64_t step = (total - last) / 255;
  if (levels <= 1 || step == 0) return table;
  int64_t below = step / 2;
  for (size_t i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(std::min<int64_t>(below / step, 255));
    below += counts[i];
  }
  return table;
}

uint8_t blended(double from, uint8_t value, double factor) {
  return static_cast<uint8_t>(std::clamp(from + factor * (value - from) + 0.5, 0.0, 255.0));
}

double grey_of(const uint8_t* pixel, int64_t channels) {
  if (channels == 1) return pixel[0];
  return (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2]) / 1000.0;
}

}  // namespace

io::Image auto_contrast(const io::Image& image) { return by_channel(image, contrast_table); }

io::Image equalize(const io::Image& image) { return by_channel(image, equalizing_table); }

io::Image invert(const io::Image& image) {
  return mapped(image, [](uint8_t v) { return static_cast<uint8_t>(255 - v); });
}

io::Image posterize(const io::Image& image, int bits) {
  const int mask = 256 - (1 << (8 - bits));
  return mapped(image, [mask](uint8_t v) { return static_cast<uint8_t>(v & mask); });
}

io::Image solarize(const io::Image& image, int threshold) {
  return mapped(image, [threshold](uint8_t v) { return v < threshold ? v : static_cast<uint8_t>(255 - v); });
}

io::Image solarize_add(const io::Image& image, int add) {
  return mapped(image, [add](uint8_t v) { return v < 128 ? static_cast<uint8_t>(std::min(255, v + add)) : v; });
}

io::Image color(const io::Image& image, double factor) {
  io::Image out = image;
  for (size_t i = 0; i < out.pixels.size(); i += static_cast<size_t>(image.channels)) {
    const double grey = grey_of(image.pixels.data() + i, image.channels);
    for (size_t c = 0; c < static_cast<size_t>(image.channels); ++c) {
      out.pixels[i + c] = blended(grey, image.pixels[i + c], factor);
    }
  }
  return out;
}

io::Image contrast(const io::Image& image, double factor) {
  double sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += static_cast<size_t>(image.channels)) {
    sum += grey_of(image.pixels.data() + i, image.channels);
  }
  const double mean = sum / static_cast<double>(image.width * image.height);
  return mapped(image, [&](uint8_t v) { return blended(mean, v, factor); });
}

io::Image brightness(const io::Image& image, double factor) {
  return mapped(image, [factor](uint8_t v) { return blended(0, v, factor); });
}

// The outermost pixels have no neighbours to smooth with and stay as they are.
io::Image sharpness(const io::Image& image, double factor) {
  io::Image out = image;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    for (int64_t x = 1; x + 1 < image.width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) {
        int sum = 4 * image.at(x, y)[c];
        for (int64_t k = 0; k < 9; ++k) sum += image.at(x - 1 + k % 3, y - 1 + k / 3)[c];
        out.at(x, y)[c] = blended(sum / 13.0, image.at(x, y)[c], factor);
      }
    }
  }
  return out;
}

}  // namespace siamese::data

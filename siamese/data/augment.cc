#include "siamese/data/augment.h"

#include <algorithm>
#include <cmath>

namespace siamese::data {
namespace {

double log_uniform(double low, double high, Draws& draws) {
  return std::exp(draws.between(std::log(low), std::log(high)));
}

// 2 1 0 1 2 ... count-1 ... : where a place outside lies inside.
int64_t reflected(int64_t place, int64_t count) {
  if (count == 1) return 0;
  if (place < 0) place = -place;
  if (place >= count) place = 2 * (count - 1) - place;
  return std::clamp<int64_t>(place, 0, count - 1);
}

}  // namespace

Box random_part(int64_t width, int64_t height, Draws& draws) {
  const auto w = static_cast<double>(width);
  const auto h = static_cast<double>(height);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = w * h * draws.between(0.08, 1);
    const double aspect = log_uniform(3.0 / 4, 4.0 / 3, draws);
    const double part_width = std::round(std::sqrt(area * aspect));
    const double part_height = std::round(std::sqrt(area / aspect));
    if (part_width < 1 || part_height < 1 || part_width > w || part_height > h) continue;
    const double x = draws.below(static_cast<int>(w - part_width) + 1);
    const double y = draws.below(static_cast<int>(h - part_height) + 1);
    return {x, y, part_width, part_height};
  }
  const double part_width = std::min(w, std::round(h * 4 / 3));
  const double part_height = std::min(h, std::round(w * 4 / 3));
  return {(w - part_width) / 2, (h - part_height) / 2, part_width, part_height};
}

io::Image shifted(const io::Image& image, int64_t x, int64_t y) {
  io::Image out(image.width, image.height, image.channels);
  for (int64_t row = 0; row < image.height; ++row) {
    for (int64_t column = 0; column < image.width; ++column) {
      const uint8_t* from = image.at(reflected(column - x, image.width), reflected(row - y, image.height));
      std::copy_n(from, image.channels, out.at(column, row));
    }
  }
  return out;
}

io::Image flipped(const io::Image& image) {
  io::Image out(image.width, image.height, image.channels);
  for (int64_t row = 0; row < image.height; ++row) {
    for (int64_t column = 0; column < image.width; ++column) {
      std::copy_n(image.at(image.width - 1 - column, row), image.channels, out.at(column, row));
    }
  }
  return out;
}

void erase_part(std::span<float> pixels, int64_t channels, int64_t size, double probability, Draws& draws) {
  if (!draws.chance(probability)) return;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(size * size) * draws.between(0.02, 1.0 / 3);
    const double aspect = log_uniform(0.3, 1 / 0.3, draws);
    const auto height = static_cast<int64_t>(std::round(std::sqrt(area * aspect)));
    const auto width = static_cast<int64_t>(std::round(std::sqrt(area / aspect)));
    if (width < 1 || height < 1 || width >= size || height >= size) continue;
    const int64_t left = draws.below(static_cast<int>(size - width + 1));
    const int64_t top = draws.below(static_cast<int>(size - height + 1));
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = top; y < top + height; ++y) {
        for (int64_t x = left; x < left + width; ++x) {
          pixels[static_cast<size_t>((c * size + y) * size + x)] = static_cast<float>(draws.normal());
        }
      }
    }
    return;
  }
}

}  // namespace siamese::data

#include "siamese/data/resize.h"

#include <algorithm>
#include <cmath>

#include "siamese/base/check.h"

namespace siamese::data {
namespace {

// Output pixel i is the sum over k of weights[i][k] x source pixel first + k.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

double cubic(double distance) {
  const double x = std::abs(distance);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// Source pixels that may count.
struct Range {
  int64_t begin;
  int64_t end;
};

std::vector<Taps> taps_of(double begin, double length, const Range& source, int64_t target) {
  const double step = length / static_cast<double>(target);
  const double scale = std::max(step, 1.0);
  const double reach = 2 * scale;
  std::vector<Taps> all(static_cast<size_t>(target));
  for (int64_t i = 0; i < target; ++i) {
    const double center = begin + (static_cast<double>(i) + 0.5) * step;
    const auto low =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(center - reach + 0.5)), source.begin, source.end - 1);
    const auto high = std::clamp<int64_t>(static_cast<int64_t>(std::floor(center + reach + 0.5)), low + 1, source.end);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t k = low; k < high; ++k) {
      weights.push_back(cubic((static_cast<double>(k) + 0.5 - center) / scale));
      sum += weights.back();
    }
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = low;
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(sum > 0 ? weight / sum : 1));
    if (sum <= 0) taps.weights.assign(1, 1.0F);  // beyond the edge: its nearest pixel
  }
  return all;
}

}  // namespace

io::Image resize(const io::Image& image, const Box& box, int64_t width, int64_t height, bool inside) {
  SIAMESE_INVARIANT(image.width > 0 && image.height > 0 && width > 0 && height > 0);
  const auto range = [inside](double begin, double length, int64_t pixels) {
    if (!inside) return Range{0, pixels};
    const auto first = std::clamp<int64_t>(static_cast<int64_t>(std::floor(begin)), 0, pixels - 1);
    return Range{first, std::clamp<int64_t>(static_cast<int64_t>(std::ceil(begin + length)), first + 1, pixels)};
  };
  const auto across = taps_of(box.x, box.width, range(box.x, box.width, image.width), width);
  const auto down = taps_of(box.y, box.height, range(box.y, box.height, image.height), height);
  int64_t top = image.height, bottom = 0;
  for (const Taps& taps : down) {
    top = std::min(top, taps.first);
    bottom = std::max(bottom, taps.first + std::ssize(taps.weights));
  }
  const auto channels = static_cast<size_t>(image.channels);
  const size_t row_values = static_cast<size_t>(width) * channels;
  std::vector<float> rows(static_cast<size_t>(bottom - top) * row_values, 0.0F);  // only across yet
  for (int64_t y = top; y < bottom; ++y) {
    float* row = rows.data() + static_cast<size_t>(y - top) * row_values;
    for (const Taps& taps : across) {
      const uint8_t* source = image.at(taps.first, y);
      for (const float weight : taps.weights) {
        for (size_t c = 0; c < channels; ++c) row[c] += weight * static_cast<float>(*source++);
      }
      row += channels;
    }
  }
  io::Image out(width, height, image.channels);
  for (int64_t y = 0; y < height; ++y) {
    const Taps& taps = down[static_cast<size_t>(y)];
    uint8_t* pixel = out.at(0, y);
    for (size_t i = 0; i < row_values; ++i) {
      float value = 0.5F;
      for (size_t k = 0; k < taps.weights.size(); ++k) {
        value += taps.weights[k] * rows[(static_cast<size_t>(taps.first - top) + k) * row_values + i];
      }
      pixel[i] = static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
    }
  }
  return out;
}

io::Image resize(const io::Image& image, int64_t width, int64_t height) {
  if (image.width == width && image.height == height) return image;
  return resize(image, {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)}, width, height);
}

io::Image center_crop(const io::Image& image, int64_t size) {
  constexpr double kShare = 0.875;
  const double side = kShare * static_cast<double>(std::min(image.width, image.height));
  return resize(
      image,
      {(static_cast<double>(image.width) - side) / 2, (static_cast<double>(image.height) - side) / 2, side, side}, size,
      size);
}

}  // namespace siamese::data

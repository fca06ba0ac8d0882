#include "siamese/data/geometry_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace siamese::data {
namespace {

double value_at(const io::Image& image, int64_t x, int64_t y, int64_t channel) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return kFill;
  return image.at(x, y)[channel];
}

}  // namespace

io::Image transformed(const io::Image& image, const Affine& map) {
  io::Image out(image.width, image.height, image.channels);
  const double middle_x = static_cast<double>(image.width) / 2 - 0.5;  // in pixels, whose middles are whole numbers
  const double middle_y = static_cast<double>(image.height) / 2 - 0.5;
  for (int64_t row = 0; row < image.height; ++row) {
    for (int64_t column = 0; column < image.width; ++column) {
      const double x = static_cast<double>(column) - middle_x;
      const double y = static_cast<double>(row) - middle_y;
      const double from_x = map.a * x + map.b * y + map.c + middle_x;
      const double from_y = map.d * x + map.e * y + map.f + middle_y;
      const auto left = static_cast<int64_t>(std::floor(from_x));
      const auto top = static_cast<int64_t>(std::floor(from_y));
      const double right = from_x - static_cast<double>(left);
      const double down = from_y - static_cast<double>(top);
      for (int64_t c = 0; c < image.channels; ++c) {
        const double upper = (1 - right) * value_at(image, left, top, c) + right * value_at(image, left + 1, top, c);
        const double lower =
            (1 - right) * value_at(image, left, top + 1, c) + right * value_at(image, left + 1, top + 1, c);
        out.at(column, row)[c] = static_cast<uint8_t>(std::clamp((1 - down) * upper + down * lower + 0.5, 0.0, 255.0));
      }
    }
  }
  return out;
}

io::Image rotate(const io::Image& image, double degrees) {
  const double angle = degrees * std::numbers::pi / 180;
  const double cosine = std::cos(angle);
  const double sine = std::sin(angle);
  return transformed(image, {.a = cosine, .b = -sine, .d = sine, .e = cosine});
}

io::Image shear_x(const io::Image& image, double factor) { return transformed(image, {.b = factor}); }

io::Image shear_y(const io::Image& image, double factor) { return transformed(image, {.d = factor}); }

io::Image translate(const io::Image& image, double x, double y) { return transformed(image, {.c = x, .f = y}); }

}  // namespace siamese::data

// Operations that move pixels about: each output pixel is read from a place of the input, bilinearly; what lies
// outside is mid-grey. Places are measured from the middle of the image.
#pragma once

#include "siamese/io/image.h"

namespace siamese::data {

inline constexpr uint8_t kFill = 128;

// Output (x, y) is read at (a x + b y + c, d x + e y + f).
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

io::Image transformed(const io::Image& image, const Affine& map);

io::Image rotate(const io::Image& image, double degrees);         // counter-clockwise
io::Image shear_x(const io::Image& image, double factor);         // read at (x + factor y, y)
io::Image shear_y(const io::Image& image, double factor);         // read at (x, y + factor x)
io::Image translate(const io::Image& image, double x, double y);  // read at (x' + x, y' + y), in pixels

}  // namespace siamese::data

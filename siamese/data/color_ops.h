// Operations on the colours of an image, as Pillow's ImageOps and ImageEnhance define them. One or three channels.
#pragma once

#include "siamese/io/image.h"

namespace siamese::data {

// Each channel stretched so that its darkest value becomes 0 and its lightest 255.
io::Image auto_contrast(const io::Image& image);
// Each channel mapped so that its values are spread evenly.
io::Image equalize(const io::Image& image);
// 255 - v.
io::Image invert(const io::Image& image);
// Only the upper `bits` of a value are kept, 0 to 8.
io::Image posterize(const io::Image& image, int bits);
// Values from `threshold` on are inverted.
io::Image solarize(const io::Image& image, int threshold);
// `add` to values below 128.
io::Image solarize_add(const io::Image& image, int add);

// p + factor (v - p), cut to 0 to 255: factor 1 changes nothing. p is
io::Image color(const io::Image& image, double factor);       // the pixel's grey
io::Image contrast(const io::Image& image, double factor);    // the mean grey of the image
io::Image brightness(const io::Image& image, double factor);  // black
io::Image sharpness(const io::Image& image, double factor);   // the pixel smoothed by (1 1 1; 1 5 1; 1 1 1) / 13

}  // namespace siamese::data

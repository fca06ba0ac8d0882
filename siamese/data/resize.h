// Resizing by the cubic filter with a = -1/2; when shrinking it is as wide as the step, so every source pixel counts
// (as Pillow's BICUBIC, which DeiT uses).
#pragma once

#include "siamese/io/image.h"

namespace siamese::data {

// In pixels of the source, from its top left corner.
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

// `inside`: only pixels of the box count, as if it had been cut out first.
io::Image resize(const io::Image& image, const Box& box, int64_t width, int64_t height, bool inside = false);
io::Image resize(const io::Image& image, int64_t width, int64_t height);

// The middle square that is left when the shorter side is resized to size / 0.875 and size x size is cut out.
io::Image center_crop(const io::Image& image, int64_t size);

}  // namespace siamese::data

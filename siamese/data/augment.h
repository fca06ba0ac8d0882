// What changes one training image: crop, flip, RandAugment on bytes, erasing on floats.
#pragma once

#include <span>

#include "siamese/data/augment_config.h"
#include "siamese/data/draws.h"
#include "siamese/data/resize.h"
#include "siamese/io/image.h"

namespace siamese::data {

// A random part of `width` x `height`: area 8 % to all, aspect 3/4 to 4/3 (log-uniform); after ten tries that do not
// fit, the largest middle part of a fitting aspect.
Box random_part(int64_t width, int64_t height, Draws& draws);

// The image moved by (x, y) pixels; what enters is its mirror image across the edge.
io::Image shifted(const io::Image& image, int64_t x, int64_t y);

// Left and right exchanged.
io::Image flipped(const io::Image& image);

// Random erasing (Zhong et al. 2017): with probability `erase` a box of 2 % to a third of the area, aspect 0.3 to
// 1/0.3, becomes standard normal noise. `pixels` [channels, size, size].
void erase_part(std::span<float> pixels, int64_t channels, int64_t size, double probability, Draws& draws);

}  // namespace siamese::data

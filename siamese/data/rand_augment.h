// RandAugment (Cubuk et al. 2019) as timm's rand-m9-mstd0.5-inc1: `operations` times, one of the operations below is
// drawn and done with probability 1/2, at strength m ~ N(magnitude, magnitude_std) cut to 0 to 10. "Increasing": a
// larger m is a larger change, of random sign where there are two directions.
#pragma once

#include "siamese/data/augment_config.h"
#include "siamese/data/draws.h"
#include "siamese/io/image.h"

namespace siamese::data {

enum class Operation {
  auto_contrast,  // m has no effect, as for the next two
  equalize,
  invert,
  rotate,        // by 3 m degrees
  posterize,     // keeps 4 - floor(0.4 m) bits
  solarize,      // from 256 - floor(25.6 m) on
  solarize_add,  // adds floor(11 m)
  color,         // factor max(0.1, 1 +- 0.09 m), as for the next three
  contrast,
  brightness,
  sharpness,
  shear_x,  // by 0.03 m
  shear_y,
  translate_x,  // by 0.045 m of the size
  translate_y,
};
inline constexpr int kOperations = 15;

// `sign`: 1 or -1.
io::Image apply(const io::Image& image, Operation operation, double magnitude, double sign);

io::Image rand_augment(io::Image image, const AugmentConfig& config, Draws& draws);

}  // namespace siamese::data

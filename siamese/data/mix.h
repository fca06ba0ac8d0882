// Mixup (Zhang et al. 2017) and cutmix (Yun et al. 2019) of whole batches, and label smoothing, as DeiT has them:
//   mixup    x_i <- l x_i + (1 - l) x_j,   j = rows - 1 - i,   l ~ Beta(a, a), one for the batch
//   cutmix   a box of x_j in place of x_i's; l is then the share of the image outside the box
//   target   l s(y_i) + (1 - l) s(y_j),    s(y) = smoothing / classes, plus 1 - smoothing at y
#pragma once

#include "siamese/data/augment_config.h"
#include "siamese/data/batches.h"
#include "siamese/data/draws.h"

namespace siamese::data {

// Beta(shape, shape), from two gamma variates (Marsaglia and Tsang 2000).
double beta_draw(double shape, Draws& draws);

// Whole pixels, inside the image.
struct PixelBox {
  int64_t left = 0, right = 0;  // right and bottom are outside
  int64_t top = 0, bottom = 0;
};

// A box of area (1 - l) around a random place, cut at the edges of the image.
PixelBox cut_box(int64_t size, double lambda, Draws& draws);

// True when batches have soft targets.
bool has_targets(const AugmentConfig& config);

// Mixes the images in place and fills batch.targets; nothing without has_targets().
void mix(Batch& batch, const AugmentConfig& config, Draws& draws);

}  // namespace siamese::data

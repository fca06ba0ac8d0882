// Batches of images: an image set in some order, resized to the model's size and channels, as floats.
//   pixel v of 0 to 1 becomes (v - mean) / std: symmetric 0.5, 0.5; imagenet ImageNet's, by channel
#pragma once

#include <memory>

#include "siamese/data/batches.h"
#include "siamese/data/image_set.h"

namespace siamese::data {

// Training: an endless set by position, any other as a new permutation each epoch keyed by (seed, epoch).
// Test: by position, from the start again each epoch.
std::unique_ptr<Batches> image_batches(std::unique_ptr<ImageSet> set, const DataConfig& config, Split split,
                                       const SampleShape& shape, uint64_t seed);

// Evenly random pixels in -1 to 1 and labels: `data.source: random` for a model of images.
std::unique_ptr<Batches> random_images(const SampleShape& shape, uint64_t seed);

}  // namespace siamese::data

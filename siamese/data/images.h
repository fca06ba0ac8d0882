// An image set as what a model takes: augmented (training), resized, as floats of the model's channels.
//   pixel v of 0 to 1 becomes (v - mean) / std: symmetric 0.5, 0.5; imagenet ImageNet's, by channel
#pragma once

#include <memory>

#include "siamese/data/image_set.h"
#include "siamese/data/labelled.h"

namespace siamese::data {

// How an image of another size becomes the model's, where no random part is taken: the whole of it, or its middle.
enum class Fit { whole, middle };

std::unique_ptr<LabelledSamples> image_samples(std::unique_ptr<ImageSet> set, Fit fit, const DataConfig& config,
                                               Split split, const SampleShape& shape, uint64_t seed);

}  // namespace siamese::data

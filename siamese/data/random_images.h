// Evenly random pixels of 8 bits, as -1 to 1, and labels: `data.source: random` for a model of images. There is nothing
// to learn in them.
#pragma once

#include <memory>

#include "siamese/data/labelled.h"

namespace siamese::data {

std::unique_ptr<LabelledSamples> random_images(const SampleShape& shape, uint64_t seed);

}  // namespace siamese::data

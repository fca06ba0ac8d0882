// Which images a config means.
#pragma once

#include <memory>

#include "siamese/data/batches.h"

namespace siamese::data {

// For shape.is_image(). UsageError where source and shape do not fit.
std::unique_ptr<Batches> open_images(const DataConfig& config, Split split, const SampleShape& shape, uint64_t seed);

}  // namespace siamese::data

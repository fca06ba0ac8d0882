// data.source=latents: images that an encoder has already made smaller. Each file of data.train is a safetensors file
//   latents [N, channels, image, image]   F32, F16 or BF16, taken as they are
//   labels  [N]                           I64 or I32
// mapped, not read in. Held out: data.val, or else the last data.val_fraction of each file.
#pragma once

#include <memory>

#include "siamese/data/labelled.h"

namespace siamese::data {

// Another shape or dtype than the model's, or a label that is not below its classes, is a DataError with the file.
std::unique_ptr<LabelledSamples> latent_samples(const DataConfig& config, Split split, const SampleShape& shape);

}  // namespace siamese::data

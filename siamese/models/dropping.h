// Where a training pass drops elements (model.dropout): of the embedding with its positions, of the weights of
// attention, and of what each branch computed, before the scheme's write sees it. An element's fate is keyed by
// (seed, position of the sample, place, number of the element): nn/dropout.h. Evaluation drops nothing.
#pragma once

#include <cstdint>

#include "siamese/models/config.h"
#include "siamese/models/model.h"
#include "siamese/nn/dropout.h"
#include "siamese/residual/site.h"

namespace siamese::models {

struct Dropping {
  DropoutConfig chances = {};
  uint64_t seed = 0;
  uint64_t first_position = 0;

  nn::Dropout embedding() const;
  nn::Dropout attention(const residual::Site& site) const;
  nn::Dropout branch(const residual::Site& site) const;
};

Dropping dropping_of(const ModelConfig& config, const Inputs& inputs, const LossOptions& options);

}  // namespace siamese::models

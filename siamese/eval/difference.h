// How far two models are apart on the same samples.
#pragma once

#include "siamese/data/batches.h"
#include "siamese/models/model.h"

namespace siamese::eval {

struct Difference {
  double max_logit = 0;    // largest |a - b| over all logits
  double loss_before = 0;  // mean loss per counted target, as held_out_loss
  double loss_after = 0;
};

// The first `samples` samples of the set, or all of it when it is smaller, `rows` in one forward pass. UsageError for a
// model without logits (dit).
Difference difference(const models::Model& before, const models::Model& after, const data::Batches& source,
                      int64_t rows, int64_t samples);

}  // namespace siamese::eval

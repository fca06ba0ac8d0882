// How far two language models are apart on the same samples.
#pragma once

#include "siamese/data/batches.h"
#include "siamese/models/lm.h"

namespace siamese::eval {

struct Difference {
  double max_logit = 0;    // largest |a - b| over all logits
  double loss_before = 0;  // mean loss per counted target, as held_out_loss
  double loss_after = 0;
};

// The first `samples` samples of the set, or all of it when it is smaller, `rows` in one forward pass.
Difference difference(const models::LanguageModel& before, const models::LanguageModel& after,
                      const data::Batches& source, int64_t rows, int64_t samples);

}  // namespace siamese::eval

// Mean loss per counted target on samples that training never sees, and its exponential, the perplexity.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/data/batches.h"
#include "siamese/eval/baseline.h"
#include "siamese/models/model.h"

namespace siamese::eval {

struct HeldOut {
  double loss = 0;  // NaN when no target counted
  double perplexity = 0;
  double targets = 0;                                 // how many counted, or images
  std::vector<std::pair<std::string, double>> terms;  // images: the means of what the loss is made of, by name
};

// The first `samples` samples of the set, or all of it when it is smaller, `rows` in one forward pass. `baseline`, if
// given, sees them too. `group`: ranks that share the passes; all of them call it and get the same (passes.h).
HeldOut held_out_loss(const models::Model& model, const data::Batches& source, int64_t rows, int64_t samples,
                      Baseline* baseline = nullptr, comm::Group* group = nullptr);

}  // namespace siamese::eval

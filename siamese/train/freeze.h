// Which parameters are not trained (optim.freeze). An entry is a kind (linear, bias, norm, embedding, scalar,
// stream_mix), or a pattern over whole dotted names in which * stands for any text, dots among it; with ! before it,
// what it means is trained after all. Entries are gone through in order and the later wins:
//   [embedding, linear]                 only norms, scalars ... are trained
//   ["*", "!blocks.*.x_norm.weight"]    only these are
// A frozen parameter requires no gradient: none is computed for it, it counts in no norm, has no moments and does not
// decay.
#pragma once

#include <string>
#include <vector>

#include "siamese/nn/parameters.h"

namespace siamese::train {

// For each of the list. UsageError naming the entry that means no parameter, or when nothing is left to train.
std::vector<bool> frozen(const std::vector<std::string>& entries, const nn::Parameters& parameters);

void freeze(const std::vector<std::string>& entries, const nn::Parameters& parameters);

}  // namespace siamese::train

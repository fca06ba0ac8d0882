// Uniformly random tokens, all of them counted: samples for a model whose own data is not at
// hand, and `data.source: random` for benchmarks. There is nothing to learn in them.
#pragma once

#include <memory>

#include "siamese/data/dataset.h"

namespace siamese::data {

std::unique_ptr<Dataset> random_tokens(int64_t vocab, uint64_t seed);

}  // namespace siamese::data

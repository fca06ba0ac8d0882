// What one forward and backward pass of training holds in memory, of any family and scheme, without computing it: the
// model itself runs on the meta device, whose tensors have shapes and no memory, and the bytes that they would have are
// counted as they come and go. So what is kept is what the ops keep, not a second description of them.
#pragma once

#include <cstdint>

#include "siamese/models/config.h"
#include "siamese/ops/operand.h"

namespace siamese::models {

struct PassMemory {
  int64_t kept_bytes = 0;  // after forward, for backward
  // The most at any time of forward or backward, with the head's logits. Weights and their gradients are not in it, nor
  // what a kernel needs for itself alone.
  int64_t peak_bytes = 0;
};

// Of `rows` samples in one pass; `recompute_every`: engine.recompute. `config` must be resolved. Not for two threads at
// the same time.
PassMemory pass_memory(const ModelConfig& config, int64_t rows, int64_t recompute_every, ops::Precision precision);

}  // namespace siamese::models

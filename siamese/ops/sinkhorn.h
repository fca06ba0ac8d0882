// Sinkhorn-Knopp in the log domain: exp(logits) made doubly stochastic by `iterations` rounds of columns, then rows, to
// sum 1. logits: [..., n, n]. Rows sum to 1 to rounding; columns as far as the rounds brought them. Finite, forward and
// backward, for any finite logits; the gradient goes through all rounds.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor sinkhorn(const at::Tensor& logits, int64_t iterations);

namespace plain {

at::Tensor sinkhorn(const at::Tensor& logits, int64_t iterations);

}  // namespace plain

}  // namespace siamese::ops

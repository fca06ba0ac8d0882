// Weighted token cross-entropy and z-loss, summed (not averaged: the caller knows the whole step's weight).
//   nll  = sum_i w_i (logsumexp(logits_i) - logits_i[target_i])
//   z    = sum_i w_i logsumexp(logits_i)^2
// logits: [rows, vocab]; targets: int64 [rows]; weights: [rows] or undefined (then 1).
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct CrossEntropy {
  at::Tensor nll;
  at::Tensor z;
};

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights);

}  // namespace siamese::ops

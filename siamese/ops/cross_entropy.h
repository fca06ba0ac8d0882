// Weighted token cross-entropy and z-loss, summed (not averaged: the caller knows the whole step's weight).
//   nll  = sum_i w_i (logsumexp(logits_i) - logits_i[target_i])
//   z    = sum_i w_i logsumexp(logits_i)^2
// logits: [rows, vocab]; targets: int64 [rows], each in [0, vocab); weights: [rows] or undefined (then 1). Both sums
// are float32 where the logits are of a half type.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct CrossEntropy {
  at::Tensor nll;
  at::Tensor z;
};

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights);

// Of an objective nll * nll + z * z.
struct LossScales {
  double nll = 1;
  double z = 0;
};

// The rows by themselves, in float32 or bfloat16 on the CPU: losses, float32, [2, rows] gets nll and z, not weighted.
// With `gradient` the dense logits become the gradient of the objective with these scales.
void cross_entropy_rows(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights,
                        const at::Tensor& losses, const LossScales* gradient);

namespace plain {

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights);

}  // namespace plain

}  // namespace siamese::ops

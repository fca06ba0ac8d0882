// The router of a mixture of experts: which k of E experts each row goes to, with which weights.
//   p = softmax(logits) over all experts; a row takes its k largest (equal ones: the lower index first)
//   weights: those p; renormalised: divided by their sum
//   balance = E / (rows k) * sum over e of counts_e * mean over rows of p_e      about 1 when balanced
//   z = mean over rows of (log sum exp logits)^2
// No expert refuses a row. Gradients flow to the logits from weights, balance (counts are constants) and z, with the
// same bits at any thread count. Without rows balance and z are 0. logits: [rows, E]. balance and z are float32 where
// the logits are of a half type.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct Routing {
  at::Tensor chosen;   // int64 [rows, k], by falling logit
  at::Tensor weights;  // [rows, k]
  at::Tensor balance;  // scalar
  at::Tensor z;        // scalar
  at::Tensor counts;   // int64 [E]: rows that went to each expert
};

Routing route(const at::Tensor& logits, int64_t k, bool renormalise);

namespace plain {

Routing route(const at::Tensor& logits, int64_t k, bool renormalise);

}  // namespace plain

}  // namespace siamese::ops

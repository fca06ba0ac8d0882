// The last projection and the loss in chunks of rows, so that the [rows, vocab] logits never exist:
//   logits = hidden W^T;  objective = nll_scale * nll + z_scale * z, nll and z as in cross_entropy.h (sums over rows)
// Where gradients are wanted they are made chunk by chunk in the forward pass, while a chunk's logits are there, and
// backward only multiplies them with the gradient that came.
// hidden: [rows, width]; weight: [vocab, width]; targets: int64 [rows]; weights: [rows] or undefined (1).
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "siamese/ops/cross_entropy.h"

namespace siamese::ops {

using HeadLossScales = LossScales;

struct HeadLoss {
  at::Tensor objective;  // differentiable
  at::Tensor nll;        // without gradient, not scaled
  at::Tensor z;
};

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales);

// Rows of logits that are there at once; element_bytes: of a logit.
int64_t head_loss_chunk(int64_t rows, int64_t vocab, int64_t element_bytes);

namespace plain {

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales);

}  // namespace plain

}  // namespace siamese::ops

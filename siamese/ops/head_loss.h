// The last projection and the loss in chunks of rows, so that the [rows, vocab] logits never exist:
//   logits = hidden W^T;  objective = nll_scale * nll + z_scale * z, nll and z as in cross_entropy.h (sums over rows)
// Where gradients are wanted they are made chunk by chunk in the forward pass, while a chunk's logits are there.
// hidden: [rows, width]; weight: [vocab, width]; targets: int64 [rows]; weights: [rows] or undefined (1).
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct HeadLossScales {
  double nll = 1;
  double z = 0;
};

struct HeadLoss {
  at::Tensor objective;  // differentiable
  at::Tensor nll;        // without gradient, not scaled
  at::Tensor z;
};

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales);

// One chunk of it: losses [2, rows] gets nll and z, not weighted; the logits become the gradient of the objective.
void cross_entropy_in_place(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights,
                            const at::Tensor& losses, const HeadLossScales& scales);

namespace plain {

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales);

}  // namespace plain

}  // namespace siamese::ops

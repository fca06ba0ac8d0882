// The kernels of a mixture of experts (expert_feed_forward.h), on sorted rows (expert_groups.h): float32 on the CPU,
// all arguments checked before, at least one row and one choice.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/activation.h"

namespace siamese::ops {

struct ExpertInputs {
  const at::Tensor& x;
  const at::Tensor& chosen;
  const at::Tensor& weights;
  const at::Tensor& w_in;
  const at::Tensor& w_out;
};

struct ExpertOutputs {
  at::Tensor y;
  at::Tensor projected;  // W_in,e x of the sorted rows: [rows k, in]
};

ExpertOutputs run_experts(Activation kind, const ExpertInputs& inputs);

struct ExpertRowGradients {
  at::Tensor x;
  at::Tensor weights;
};

// ADDS the gradients of the experts' weights to dw_in and dw_out, which are row-major; undefined: not wanted.
ExpertRowGradients run_experts_backward(Activation kind, const ExpertInputs& inputs, const at::Tensor& projected,
                                        const at::Tensor& dy, const at::Tensor& dw_in, const at::Tensor& dw_out);

}  // namespace siamese::ops

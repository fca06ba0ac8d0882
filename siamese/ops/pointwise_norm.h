// Element-wise stand-ins for a norm (kernels/pointwise_norm.h), without statistics:
//   dyt:    y = gain tanh(alpha x + shift) + bias         (arXiv 2503.10622, where there is no shift)
//   derf:   y = gain erf(alpha x + shift) + bias          (arXiv 2512.10938)
// x: [..., cols]; alpha and shift: [1], shift undefined: 0; gain, bias: [cols] or undefined (then 1 and 0).
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/kernels/pointwise_norm.h"

namespace siamese::ops {

using kernels::PointwiseFunction;

at::Tensor pointwise_norm(PointwiseFunction function, const at::Tensor& x, const at::Tensor& alpha,
                          const at::Tensor& shift, const at::Tensor& gain, const at::Tensor& bias);

namespace plain {

at::Tensor pointwise_norm(PointwiseFunction function, const at::Tensor& x, const at::Tensor& alpha,
                          const at::Tensor& shift, const at::Tensor& gain, const at::Tensor& bias);

}  // namespace plain

}  // namespace siamese::ops

// RMSNorm and LayerNorm over the last dimension.
//   rms_norm:   y = x / sqrt(mean(x^2) + eps) * gain
//   layer_norm: y = (x - mean(x)) / sqrt(var(x) + eps) * gain + bias      (biased variance)
// x: [..., cols]; gain, bias: [cols] or undefined (then 1 and 0).
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps);

namespace plain {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps);

}  // namespace plain

}  // namespace siamese::ops

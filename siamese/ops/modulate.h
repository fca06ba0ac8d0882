// Scale and shift, or gate, of every token by numbers of its sample (kernels/modulate.h); forward and backward one pass
// each.
//   modulate: y = x (1 + scale) + shift          gate: y = x gate
// With half_output y is bfloat16, rounded once, and so is what comes back to it (ops/operand.h).
// x: [batch, tokens, cols]; shift, scale, gate: [batch, cols], which may be parts of one wider tensor.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, bool half_output = false);
at::Tensor gate(const at::Tensor& x, const at::Tensor& gate);

namespace plain {

at::Tensor modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale);
at::Tensor gate(const at::Tensor& x, const at::Tensor& gate);

}  // namespace plain

}  // namespace siamese::ops

// y = x W^T (+ b). x: [..., in]; weight: [out, in]; bias: [out] or undefined. Weight and bias are of x's type, or
// float32 beside x and y of a half type (ops/operand.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// Column sums of [rows, cols] in an order that does not depend on the thread count: the gradient of a bias.
at::Tensor column_sums(const at::Tensor& rows);

namespace plain {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace plain

}  // namespace siamese::ops

// Rows of a table: y[i] = table[indices[i]]. table: [rows, width]; indices: int64 [...] -> [..., width]. The gradient
// of a row is the sum of its uses in their order, at any thread count.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices);

namespace plain {

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices);

}  // namespace plain

}  // namespace siamese::ops

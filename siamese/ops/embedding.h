// Rows of a table: y[i] = table[indices[i]]. table: [rows, width]; indices: int64 [...] -> [..., width]. The gradient
// of a row is the sum of its uses in their order, at any thread count.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices);

// x [batch, ...] + row [...], a row for every sample; its gradient is the sum over samples in one order.
at::Tensor add_to_each(const at::Tensor& x, const at::Tensor& row);

namespace plain {

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices);
at::Tensor add_to_each(const at::Tensor& x, const at::Tensor& row);

}  // namespace plain

}  // namespace siamese::ops

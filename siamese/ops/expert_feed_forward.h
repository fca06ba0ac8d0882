// The feed-forward branches of a mixture of experts as one node:
//   y_t = sum over r of weights[t, r] W_out,e a(W_in,e x_t),  e = chosen[t, r],  a = ops/activation.h
// The rows are sorted by expert, each expert's are a few dense products, each on one thread; which rows make a product
// depends on the routing alone, so the bits do not depend on the thread count. Kept for backward: x, the input
// projections and the sorting. x: [rows, width]; chosen (int64), weights: [rows, k]; w_in: [E, hidden or 2 hidden,
// width]; w_out: [E, width, hidden]. The gradient of an expert without rows is zero.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/activation.h"

namespace siamese::ops {

at::Tensor expert_feed_forward(Activation kind, const at::Tensor& x, const at::Tensor& chosen,
                               const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out);

namespace plain {

at::Tensor expert_feed_forward(Activation kind, const at::Tensor& x, const at::Tensor& chosen,
                               const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out);

}  // namespace plain

}  // namespace siamese::ops

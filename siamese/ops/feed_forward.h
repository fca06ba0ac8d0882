// The feed-forward branch as one node: y = W_out a(W_in x + b_in) + b_out, a = ops/activation.h.
// Kept for backward: x and the input projection. The activation's output is computed again in the pass that makes the
// projection's gradient. x: [..., width]; w_in: [hidden or 2 hidden, width]; w_out: [width, hidden]; b_in, b_out: a
// number for each row of w_in and w_out, or undefined. All of x's type, or float32 beside x and y of a half type.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/activation.h"

namespace siamese::ops {

struct FeedForwardWeights {
  at::Tensor w_in;
  at::Tensor b_in;
  at::Tensor w_out;
  at::Tensor b_out;
};

at::Tensor feed_forward(Activation kind, const at::Tensor& x, const FeedForwardWeights& weights);

namespace plain {

at::Tensor feed_forward(Activation kind, const at::Tensor& x, const FeedForwardWeights& weights);

}  // namespace plain

}  // namespace siamese::ops

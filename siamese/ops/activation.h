// The activation of the feed-forward branch, forward and backward one pass each; only x is kept for backward.
//   swiglu: x = [up | gate]: up * silu(gate);   gelu: exact;   gelu_tanh: its tanh form
// x: [..., cols], or [..., 2 cols] for swiglu.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/kernels/activation.h"

namespace siamese::ops {

using kernels::Activation;

at::Tensor activation(Activation kind, const at::Tensor& x);

// x sigmoid(x) and sigmoid(x) of a small tensor: LibTorch's own, which computes the last elements of a thread's share
// by another formula, on one thread.
at::Tensor silu(const at::Tensor& x);
at::Tensor sigmoid(const at::Tensor& x);

namespace plain {

at::Tensor activation(Activation kind, const at::Tensor& x);

}  // namespace plain

}  // namespace siamese::ops

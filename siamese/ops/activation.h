// The activation of the feed-forward branch, forward and backward one pass each; only x is kept for backward.
//   swiglu: x = [up | gate]: up * silu(gate);   gelu: exact;   gelu_tanh: its tanh form
// x: [..., cols], or [..., 2 cols] for swiglu.
#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"
#include "siamese/kernels/activation.h"

namespace siamese::ops {

using kernels::Activation;

at::Tensor activation(Activation kind, const at::Tensor& x);

// x sigmoid(x) and sigmoid(x) of a small tensor: LibTorch's own, which computes the last elements of a thread's share
// by another formula, on one thread.
at::Tensor silu(const at::Tensor& x);
at::Tensor sigmoid(const at::Tensor& x);

// Schemas have the kind as a word; one that is none is a UsageError of `op`.
Activation activation_named(const char* op, std::string_view kind);

namespace plain {

at::Tensor activation(Activation kind, const at::Tensor& x);

}  // namespace plain

}  // namespace siamese::ops

template <>
struct siamese::EnumText<siamese::ops::Activation> {
  static constexpr EnumNames<ops::Activation, 3> names{{{ops::Activation::swiglu, "swiglu"},
                                                        {ops::Activation::gelu, "gelu"},
                                                        {ops::Activation::gelu_tanh, "gelu_tanh"}}};
};

// Rotary position embedding, half rotation (first half paired with second half):
//   y = [x1 cos - x2 sin, x2 cos + x1 sin],  angle = position * theta^(-2j / head_dim),  j < head_dim / 2
// x: [..., tokens, heads, head_dim]; cos, sin: [tokens, 1, head_dim / 2], which get no gradient. Training rotates
// inside ops/attention.h; this is for tokens that join a cache.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

namespace plain {

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace plain

}  // namespace siamese::ops

// The heads of q, k and v as attention uses them, for whoever looks at them before it does: normed where there is a
// gain, q and k rotated, by ops/norm.h and ops/rope.h. (ops/attention.h does the same within its own pass.)
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/attention.h"

namespace siamese::ops {

// [batch, tokens, heads or kv_heads, head_dim], of the type of qkv.
struct AttentionHeads {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

// qkv and `arguments` as of ops/attention.h; cos and sin may also be those of each sequence,
// [batch, tokens, 1, head_dim / 2].
AttentionHeads attention_heads(const at::Tensor& qkv, const AttentionArguments& arguments);

}  // namespace siamese::ops

// Attention from the projected q, k, v to what the output projection reads, forward and backward one pass each:
//   norms where there is a gain (RMSNorm per head), RoPE on q and k (ops/rope.h), softmax(q k^T / sqrt(head_dim)) v
// qkv: [batch, tokens, (heads + 2 kv_heads) head_dim]: the heads of q, then of k, then of v. Returns
// [batch, tokens, heads * head_dim]. Query head j uses key/value head floor(j * kv_heads / heads).
// Only qkv, the result and a number per row and head are kept for backward. Gains, cos and sin are of qkv's type, or
// float32 beside qkv and a result of a half type.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct AttentionArguments {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  bool causal = true;
  int64_t window = 0;  // tokens that a token sees, itself among them; 0: all before it. Only when causal
  at::Tensor cos;      // [tokens, 1, head_dim / 2]; undefined: no rotation. No gradient.
  at::Tensor sin;
  at::Tensor q_gain;  // [head_dim]; undefined: no norm
  at::Tensor k_gain;
  at::Tensor v_gain;
  double eps = 0;
};

at::Tensor attention(const at::Tensor& qkv, const AttentionArguments& arguments);

namespace plain {

at::Tensor attention(const at::Tensor& qkv, const AttentionArguments& arguments);

}  // namespace plain

}  // namespace siamese::ops

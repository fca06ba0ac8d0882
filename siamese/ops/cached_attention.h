// Attention of new tokens to themselves and to all before them, whose keys and values are kept: what ops/attention.h
// computes of the last rows, without computing the others again.
//   qkv           [batch, tokens, (heads + 2 kv_heads) head_dim], as in ops/attention.h, of the new tokens
//   keys, values  [batch, kv_heads, capacity, head_dim]: token n of a sequence stands in slot n % capacity. The op
//                 writes the new tokens' rows, normed and rotated.
//   past          [batch]: tokens of each sequence before these; sequences may stand at different ones
//   cos, sin      [tokens, 1, head_dim / 2] for all sequences, or [batch, tokens, 1, head_dim / 2]
// Returns [batch, tokens, heads * head_dim]. Past its capacity the cache is a ring: a token sees itself and the
// capacity - 1 before it, or as many as the window of `arguments` says, where that is less. Several tokens at once must
// fit without going round. Without gradients; always causal.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/attention.h"

namespace siamese::ops {

at::Tensor cached_attention(const at::Tensor& qkv, const AttentionArguments& arguments, const at::Tensor& keys,
                            const at::Tensor& values, at::IntArrayRef past);

}  // namespace siamese::ops

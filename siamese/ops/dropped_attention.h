// Attention with dropout on its weights, in training:
//   p = softmax(q k^T / sqrt(head_dim)), causal or not;  out = (p with `dropped` elements 0, the others / (1 - chance))
//   v
// q, k and v come from qkv by the norms and the rotation of ops/attention.h, whose arguments these are.
// A path of its own: the kernel of ops/attention.h never asks for a mask and loses nothing. Here the scores of a
// key/value head of a sample are made whole, in forward and once more in backward; q, k, v and one byte for each score
// are kept. Such a head is one task on one thread, so the bits are the same at any number of threads. Products and
// softmax in float32 on operands of qkv's type. A function of C++ and no op of the dispatcher: only training drops.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/attention.h"

namespace siamese::ops {

// dropped: bool [batch, heads, tokens, tokens], true where a weight is left out. UsageError with engine.ops: fused.
at::Tensor dropped_attention(const at::Tensor& qkv, const AttentionArguments& arguments, const at::Tensor& dropped,
                             double chance);

}  // namespace siamese::ops

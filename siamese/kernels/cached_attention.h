// Attention of new tokens to themselves and to the keys and values kept of those before them, one pass per head:
//   q, k, v   each head's rows of qkv with norms and RoPE, as in kernels/attention.h
//   the new k and v are written to their place in the cache
//   out_t = sum_j p_tj v_j,  p_t = softmax over the tokens j that t sees of q_t . k_j / sqrt(D)
//   qkv           [B, T, (H + 2 Hkv) D]: the heads of q, then of k, then of v
//   keys, values  [B, Hkv, capacity, D]: token n of a sequence stands in slot n % capacity
//   past          [B]: tokens of each sequence before these
//   cos, sin      [T, D / 2] of all samples, or of each (angles_stride floats further); half rotation
//   out           [B, T, H D]
// A token sees itself and those before it, at most `capacity` in all, and at most `window` where the shape has one:
// past the end the cache is a ring and the oldest token is forgotten. So T > 1 must fit without going round: past + T
// <= capacity. A task is one key/value head of one sample (task = b Hkv + head): tasks are independent of one another.
#pragma once

#include <cstdint>

#include "siamese/kernels/attention.h"

namespace siamese::kernels {

struct KeyValueCache {
  float* keys = nullptr;
  float* values = nullptr;
  const int64_t* past = nullptr;
  int64_t capacity = 0;
  int64_t angles_stride = 0;
};

// Floats of scratch, this thread's own, for any range of tasks.
int64_t cached_attention_scratch(const AttentionShape& shape, const KeyValueCache& cache);

// The cache's new rows, and out (null: not wanted) for the heads of the tasks. Of shape, `causal` is not asked.
void cached_attention(const AttentionShape& shape, const AttentionInputs& inputs, const KeyValueCache& cache,
                      float* out, float* scratch, int64_t task_begin, int64_t task_end);

}  // namespace siamese::kernels

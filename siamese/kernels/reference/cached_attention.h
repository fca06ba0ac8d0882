// Attention that forgets, in plain double loops: what siamese/kernels/cached_attention.h must compute for the tokens of
// whole sequences, however they came, to float rounding. Token n sees the last `capacity` tokens up to itself.
#pragma once

#include <algorithm>

#include "siamese/kernels/reference/attention.h"

namespace siamese::kernels::reference {

// inputs: all tokens of the sequences; out: [B, T, H D].
inline void windowed_attention(const AttentionShape& s, const AttentionInputs& inputs, int64_t capacity, double* out) {
  const int64_t dim = s.head_dim;
  for (int64_t sample = 0; sample < s.batch; ++sample) {
    for (int64_t head = 0; head < s.heads; ++head) {
      const int64_t kv_head = head / (s.heads / s.kv_heads);
      const AttentionHead q(s, inputs, 0, sample, head), k(s, inputs, 1, sample, kv_head),
          v(s, inputs, 2, sample, kv_head);
      for (int64_t n = 0; n < s.tokens; ++n) {
        double* const row = out + ((sample * s.tokens + n) * s.heads + head) * dim;
        std::fill(row, row + dim, 0.0);
        double sum = 0;
        for (int64_t j = std::max<int64_t>(0, n + 1 - capacity); j <= n; ++j) {
          double score = 0;
          for (int64_t i = 0; i < dim; ++i) score += q.y[n * dim + i] * k.y[j * dim + i];
          const double p = std::exp(score / std::sqrt(static_cast<double>(dim)));
          sum += p;
          for (int64_t i = 0; i < dim; ++i) row[i] += p * v.y[j * dim + i];
        }
        for (int64_t i = 0; i < dim; ++i) row[i] /= sum;
      }
    }
  }
}

}  // namespace siamese::kernels::reference

// Attention in plain double loops: what siamese/kernels/attention.h must compute, to float rounding. Same layouts.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "siamese/kernels/attention.h"
#include "siamese/kernels/reference/rms_norm.h"

namespace siamese::kernels::reference {

// Null: no rotation, no norm.
struct AttentionInputs {
  const double* qkv = nullptr;
  const double* cos = nullptr;
  const double* sin = nullptr;
  const double* gains[3] = {nullptr, nullptr, nullptr};  // q, k, v
};

// One head of one part (0 q, 1 k, 2 v) of one sample: its rows as they are in qkv and after norm and RoPE.
struct AttentionHead {
  AttentionHead(const AttentionShape& s, const AttentionInputs& inputs, int part, int64_t sample, int64_t head)
      : tokens(s.tokens),
        dim(s.head_dim),
        stride((s.heads + 2 * s.kv_heads) * dim),
        offset(sample * tokens * stride + (part == 0   ? head
                                           : part == 1 ? s.heads + head
                                                       : s.heads + s.kv_heads + head) *
                                              dim),
        gain(inputs.gains[part]),
        cos(part == 2 ? nullptr : inputs.cos),
        sin(inputs.sin),
        x(static_cast<size_t>(tokens * dim)),
        y(x),
        dy(x.size()),
        rstd(static_cast<size_t>(tokens)) {
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t i = 0; i < dim; ++i) x[t * dim + i] = inputs.qkv[offset + t * stride + i];
    }
    y = x;
    if (gain != nullptr) rms_norm_forward(x.data(), gain, s.eps, y.data(), rstd.data(), tokens, dim);
    if (cos != nullptr) rotate(y, 1);
  }

  // direction -1 turns back
  void rotate(std::vector<double>& rows, double direction) const {
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t j = 0; j < dim / 2; ++j) {
        double& first = rows[t * dim + j];
        double& second = rows[t * dim + dim / 2 + j];
        const double c = cos[t * (dim / 2) + j];
        const double s = sin[t * (dim / 2) + j] * direction;
        const double turned = first * c - second * s;
        second = second * c + first * s;
        first = turned;
      }
    }
  }

  // From dy, the gradient of y, to that of x; dgain may be null.
  void backward(double* d_qkv, double* dgain) {
    if (cos != nullptr) rotate(dy, -1);
    std::vector<double> dx = dy;
    if (gain != nullptr) rms_norm_backward(dy.data(), x.data(), gain, rstd.data(), dx.data(), dgain, tokens, dim);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t i = 0; i < dim; ++i) d_qkv[offset + t * stride + i] = dx[t * dim + i];
    }
  }

  int64_t tokens, dim, stride, offset;
  const double* gain;
  const double* cos;
  const double* sin;
  std::vector<double> x, y, dy, rstd;
};

inline double row_product(const double* a, const double* b, int64_t dim) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) sum += a[i] * b[i];
  return sum;
}

// The first key that query i sees.
inline int64_t first_key(const AttentionShape& s, int64_t i) {
  return s.causal && s.window > 0 && i >= s.window ? i - s.window + 1 : 0;
}

inline void attention_forward(const AttentionShape& s, const AttentionInputs& inputs, double* out, double* lse) {
  const int64_t dim = s.head_dim;
  for (int64_t sample = 0; sample < s.batch; ++sample) {
    for (int64_t head = 0; head < s.heads; ++head) {
      const int64_t kv_head = head / (s.heads / s.kv_heads);
      const AttentionHead q(s, inputs, 0, sample, head), k(s, inputs, 1, sample, kv_head),
          v(s, inputs, 2, sample, kv_head);
      for (int64_t i = 0; i < s.tokens; ++i) {
        const int64_t from = first_key(s, i), seen = s.causal ? i + 1 : s.tokens;
        std::vector<double> scores;
        double max = -std::numeric_limits<double>::infinity();
        for (int64_t j = from; j < seen; ++j) {
          scores.push_back(row_product(&q.y[i * dim], &k.y[j * dim], dim) / std::sqrt(static_cast<double>(dim)));
          max = std::max(max, scores.back());
        }
        double sum = 0;
        for (const double score : scores) sum += std::exp(score - max);
        const double row_lse = max + std::log(sum);
        lse[(sample * s.heads + head) * s.tokens + i] = row_lse;
        double* const row = out + ((sample * s.tokens + i) * s.heads + head) * dim;
        for (int64_t c = 0; c < dim; ++c) row[c] = 0;
        for (int64_t j = from; j < seen; ++j) {
          for (int64_t c = 0; c < dim; ++c) row[c] += std::exp(scores[j - from] - row_lse) * v.y[j * dim + c];
        }
      }
    }
  }
}

// Overwrites d_qkv; adds to d_gains [3, D], the sum over all tasks.
inline void attention_backward(const AttentionShape& s, const AttentionInputs& inputs, const double* out,
                               const double* lse, const double* d_out, double* d_qkv, double* d_gains) {
  const int64_t dim = s.head_dim;
  const int64_t group = s.heads / s.kv_heads;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  for (int64_t sample = 0; sample < s.batch; ++sample) {
    for (int64_t kv_head = 0; kv_head < s.kv_heads; ++kv_head) {
      AttentionHead k(s, inputs, 1, sample, kv_head), v(s, inputs, 2, sample, kv_head);
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        AttentionHead q(s, inputs, 0, sample, head);
        for (int64_t i = 0; i < s.tokens; ++i) {
          const int64_t row = ((sample * s.tokens + i) * s.heads + head) * dim;
          const double row_lse = lse[(sample * s.heads + head) * s.tokens + i];
          const double delta = row_product(d_out + row, out + row, dim);
          for (int64_t j = first_key(s, i); j < (s.causal ? i + 1 : s.tokens); ++j) {
            const double p = std::exp(row_product(&q.y[i * dim], &k.y[j * dim], dim) * scale - row_lse);
            const double ds = p * (row_product(d_out + row, &v.y[j * dim], dim) - delta) * scale;
            for (int64_t c = 0; c < dim; ++c) {
              q.dy[i * dim + c] += ds * k.y[j * dim + c];
              k.dy[j * dim + c] += ds * q.y[i * dim + c];
              v.dy[j * dim + c] += p * d_out[row + c];
            }
          }
        }
        q.backward(d_qkv, d_gains);
      }
      k.backward(d_qkv, d_gains + dim);
      v.backward(d_qkv, d_gains + 2 * dim);
    }
  }
}

}  // namespace siamese::kernels::reference

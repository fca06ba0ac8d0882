#include "siamese/kernels/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/cached_attention.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/attention_rows-inl.h"
#include "siamese/kernels/row_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {
namespace cached_rows {

HWY_INLINE int64_t whole_vectors(int64_t floats) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  return (floats + lanes - 1) / lanes * lanes;
}

// The scratch: q of the heads of a task [group, D], their scores [group, keys], keys in whole vectors.
struct Scratch {
  Scratch(const AttentionShape& shape, const KeyValueCache& cache)
      : group(shape.heads / shape.kv_heads), keys(whole_vectors(cache.capacity)), scores(group * shape.head_dim) {}

  int64_t size() const { return scores + group * keys; }

  int64_t group;
  int64_t keys;
  int64_t scores;  // offset
};

// y = factor sum_j p[j] v[j] over vectors of columns that stay in registers.
template <int kVectors, class Access>
HWY_INLINE void weighted_sum(const float* HWY_RESTRICT p, const float* HWY_RESTRICT v, int64_t count, int64_t stride,
                             hn::Vec<Floats> factor, Access access, float* HWY_RESTRICT y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Floats> sums[kVectors];
#pragma GCC unroll 4
  for (int c = 0; c < kVectors; ++c) sums[c] = hn::Zero(d);
  for (int64_t j = 0; j < count; ++j) {
    const auto share = hn::Set(d, p[j]);
#pragma GCC unroll 4
    for (int c = 0; c < kVectors; ++c) {
      sums[c] = hn::MulAdd(share, access.load(d, v + j * stride + c * lanes), sums[c]);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kVectors; ++c) access.store(hn::Mul(sums[c], factor), d, y + c * lanes);
}

HWY_INLINE void mix_values(const float* p, const float* v, int64_t count, int64_t dim, float factor, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + 4 * lanes <= dim; i += 4 * lanes) weighted_sum<4>(p, v + i, count, dim, by, WholeVector(), y + i);
  for (; i + 2 * lanes <= dim; i += 2 * lanes) weighted_sum<2>(p, v + i, count, dim, by, WholeVector(), y + i);
  for (; i + lanes <= dim; i += lanes) weighted_sum<1>(p, v + i, count, dim, by, WholeVector(), y + i);
  if (i < dim) weighted_sum<1>(p, v + i, count, dim, by, PartVector{static_cast<size_t>(dim - i)}, y + i);
}

// One key/value head of one sample.
struct Task {
  Task(const AttentionShape& shape, const AttentionInputs& inputs, const KeyValueCache& cache, int64_t index)
      : dim(shape.head_dim),
        sample(index / shape.kv_heads),
        head(index % shape.kv_heads),
        group(shape.heads / shape.kv_heads),
        past(cache.past[sample]),
        capacity(cache.capacity),
        window(shape.window > 0 ? std::min(shape.window, cache.capacity) : cache.capacity),
        row((shape.heads + 2 * shape.kv_heads) * dim),
        keys(cache.keys + index * capacity * dim),
        values(cache.values + index * capacity * dim) {
    const float* const qkv = inputs.qkv + sample * shape.tokens * row;
    q = qkv + head * group * dim;
    k = qkv + (shape.heads + head) * dim;
    v = k + shape.kv_heads * dim;
    const float* const cos = row_or_null(inputs.cos, sample * cache.angles_stride);
    const float* const sin = row_or_null(inputs.sin, sample * cache.angles_stride);
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
    q_rows = {dim, dim, inputs.q_gain, cos, sin, shape.eps, scale * kLog2E};
    k_rows = {dim, dim, inputs.k_gain, cos, sin, shape.eps, 1};
    v_rows = {dim, dim, inputs.v_gain, nullptr, nullptr, shape.eps, 1};
  }

  void keep(int64_t token) const {
    const int64_t slot = (past + token) % capacity;
    head_row(k_rows, k + token * row, token, keys + slot * dim);
    head_row(v_rows, v + token * row, token, values + slot * dim);
  }

  // In a ring the tokens of a window may stand in two places: then all are scored, and those before it do not count.
  void hide_before_window(int64_t position, float* scores) const {
    for (int64_t slot = 0; slot < capacity; ++slot) {
      const int64_t age = (position - slot) % capacity;  // position >= capacity > slot
      if (age >= window) scores[slot] = -std::numeric_limits<float>::infinity();
    }
  }

  // What the query heads of one token make of the tokens it sees.
  void attend(const Scratch& at, int64_t token, float* out, float* scratch) const {
    float* const queries = scratch;
    float* const scores = scratch + at.scores;
    const int64_t position = past + token;
    const bool ring = position >= capacity;
    const int64_t first = ring ? 0 : std::max<int64_t>(0, position + 1 - window);
    const int64_t seen = ring ? capacity : position + 1 - first;
    for (int64_t h = 0; h < group; ++h) head_row(q_rows, q + token * row + h * dim, token, queries + h * dim);
    dot_products(queries, group, dim, keys + first * dim, dim, scores, at.keys, seen);
    for (int64_t h = 0; h < group; ++h) {
      float* const p = scores + h * at.keys;
      if (ring && window < capacity) hide_before_window(position, p);
      const float sum = row_exp2(p, seen, seen, row_max(p, seen));
      mix_values(p, values + first * dim, seen, dim, 1 / sum, out + h * dim);
    }
  }

  int64_t dim, sample, head, group, past, capacity, window;
  int64_t row;  // floats of qkv from token to token
  float* keys;
  float* values;
  const float* q;
  const float* k;
  const float* v;
  HeadRows q_rows, k_rows, v_rows;
};

}  // namespace cached_rows

int64_t cached_attention_scratch(const AttentionShape& shape, const KeyValueCache& cache) {
  return cached_rows::Scratch(shape, cache).size();
}

void cached_attention(const AttentionShape& shape, const AttentionInputs& inputs, const KeyValueCache& cache,
                      float* out, float* scratch, int64_t task_begin, int64_t task_end) {
  const cached_rows::Scratch at(shape, cache);
  for (int64_t index = task_begin; index < task_end; ++index) {
    const cached_rows::Task task(shape, inputs, cache, index);
    for (int64_t token = 0; token < shape.tokens; ++token) task.keep(token);
    if (out == nullptr) continue;
    for (int64_t token = 0; token < shape.tokens; ++token) {
      float* const row = out + (task.sample * shape.tokens + token) * shape.heads * shape.head_dim;
      task.attend(at, token, row + task.head * task.group * task.dim, scratch);
    }
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(cached_attention_scratch);
HWY_EXPORT(cached_attention);

int64_t cached_attention_scratch(const AttentionShape& shape, const KeyValueCache& cache) {
  return HWY_DYNAMIC_DISPATCH(cached_attention_scratch)(shape, cache);
}

void cached_attention(const AttentionShape& shape, const AttentionInputs& inputs, const KeyValueCache& cache,
                      float* out, float* scratch, int64_t task_begin, int64_t task_end) {
  HWY_DYNAMIC_DISPATCH(cached_attention)(shape, inputs, cache, out, scratch, task_begin, task_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

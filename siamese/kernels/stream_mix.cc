#include "siamese/kernels/stream_mix.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/stream_mix.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/row_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// A weighted sum of rows. What a row of forward and of backward is made of: a row is read once from memory and then,
// for each sum it is part of, from the nearest cache.
class WeightedRows {
 public:
  void add(const float* row, float weight) {
    rows_[count_] = row;
    weights_[count_++] = weight;
  }

  void sum(int64_t cols, float* to) const {
    switch (count_) {
      case 1:
        return sum_of<1>(cols, to);
      case 2:
        return sum_of<2>(cols, to);
      case 3:
        return sum_of<3>(cols, to);
      case 4:
        return sum_of<4>(cols, to);
      default:
        return sum_of<5>(cols, to);
    }
  }

 private:
  // Named one by one: vectors of some targets may not be members or elements.
  template <int kCount>
  HWY_INLINE void sum_of(int64_t cols, float* to) const {
    const Floats d;
    const float *r0 = rows_[0], *r1 = rows_[1], *r2 = rows_[2], *r3 = rows_[3], *r4 = rows_[4];
    const auto w0 = hn::Set(d, weights_[0]);
    const auto w1 = hn::Set(d, weights_[1]);
    const auto w2 = hn::Set(d, weights_[2]);
    const auto w3 = hn::Set(d, weights_[3]);
    const auto w4 = hn::Set(d, weights_[4]);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      auto sum = hn::Mul(access.load(d, r0 + i), w0);
      if constexpr (kCount > 1) sum = hn::MulAdd(access.load(d, r1 + i), w1, sum);
      if constexpr (kCount > 2) sum = hn::MulAdd(access.load(d, r2 + i), w2, sum);
      if constexpr (kCount > 3) sum = hn::MulAdd(access.load(d, r3 + i), w3, sum);
      if constexpr (kCount > 4) sum = hn::MulAdd(access.load(d, r4 + i), w4, sum);
      access.store(sum, d, to + i);
    });
  }

  std::array<const float*, kMaxMixedStreams + 1> rows_{};
  std::array<float, kMaxMixedStreams + 1> weights_{};
  size_t count_ = 0;
};

// dots[k] = <a, b_k> for the first kCount rows b, in one look at all of them.
template <int kCount>
HWY_INLINE void dots_with(const float* a, const PerStream<const float>& b, int64_t cols, double* dots) {
  const Floats d;
  const float *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
  RowSums<false> dot0, dot1, dot2, dot3;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto value = access.load(d, a + i);
    dot0.add(value, access.load(d, b0 + i));
    if constexpr (kCount > 1) dot1.add(value, access.load(d, b1 + i));
    if constexpr (kCount > 2) dot2.add(value, access.load(d, b2 + i));
    if constexpr (kCount > 3) dot3.add(value, access.load(d, b3 + i));
  });
  dots[0] = dot0.total().second;
  if constexpr (kCount > 1) dots[1] = dot1.total().second;
  if constexpr (kCount > 2) dots[2] = dot2.total().second;
  if constexpr (kCount > 3) dots[3] = dot3.total().second;
}

HWY_INLINE void dots_with(int count, const float* a, const PerStream<const float>& b, int64_t cols, double* dots) {
  switch (count) {
    case 1:
      return dots_with<1>(a, b, cols, dots);
    case 2:
      return dots_with<2>(a, b, cols, dots);
    case 3:
      return dots_with<3>(a, b, cols, dots);
    default:
      return dots_with<4>(a, b, cols, dots);
  }
}

template <class T>
HWY_INLINE PerStream<T> rows_at(const PerStream<T>& arrays, int64_t at) {
  PerStream<T> rows{};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = arrays[i] == nullptr ? nullptr : arrays[i] + at;
  return rows;
}

// Where a row's M or b (of `size` numbers) begins.
HWY_INLINE int64_t coefficients_at(const StreamMix& mix, int64_t row, int size) {
  return mix.each_row ? row * size : 0;
}

// sum_i M_ji s_i, for a j.
HWY_INLINE WeightedRows mixed(const StreamMix& mix, const float* weights, const PerStream<const float>& streams) {
  WeightedRows rows;
  for (int i = 0; i < mix.streams; ++i) rows.add(streams[static_cast<size_t>(i)], weights[i]);
  return rows;
}

template <bool kLayer>
using MixNorm = RowNormAt<kLayer, Presence::unknown>;

template <bool kLayer>
void mix_row(const StreamMix& mix, const StreamMixRows& rows, int64_t row) {
  const Floats d;
  const int64_t cols = mix.cols;
  const int64_t at = row * cols;
  const PerStream<const float> streams = rows_at(rows.streams, at);
  const PerStream<float> outputs = rows_at(rows.outputs, at);
  const float* const matrix = mix.matrix + coefficients_at(mix, row, mix.outputs * mix.streams);
  for (int j = 0; j < mix.outputs; ++j) {
    WeightedRows sum = mixed(mix, matrix + j * mix.streams, streams);
    if (rows.branch != nullptr)
      sum.add(rows.branch + at, mix.branch_weights[coefficients_at(mix, row, mix.outputs) + j]);
    sum.sum(cols, outputs[static_cast<size_t>(j)]);
  }
  MixNorm<kLayer> norm(mix.norm, row);
  if (!norm.present()) return;
  float* const out = outputs[0];
  RowSums<kLayer> sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto value = access.load(d, out + i);
    sums.add(value, value);
  });
  norm.set_statistics(sums.total(), cols);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    access.store(norm.affine(access, i, norm.normalised(access.load(d, out + i))), d, out + i);
  });
}

// The gradient of the row before its norm, in `before`, which comes in as that row itself.
template <bool kLayer>
HWY_INLINE void norm_row_backward(MixNorm<kLayer>& norm, const float* dy, const RowNormGradient& gradient, int64_t cols,
                                  float* before, float* gained) {
  const Floats d;
  norm.load_statistics();
  RowSums<kLayer> sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto dy_i = access.load(d, dy + i);
    const auto normed = access.zero_outside(d, norm.normalised(access.load(d, before + i)));
    const auto g = norm.gained(access, i, dy_i);
    norm.add_gradient(access, i, dy_i, normed, gradient);
    access.store(normed, d, before + i);
    access.store(g, d, gained + i);
    sums.add(g, normed);
  });
  const NormMeans means(sums.total(), cols);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto normed = access.load(d, before + i);
    const auto g = access.load(d, gained + i);
    access.store(norm.input_gradient(g, normed, means), d, before + i);
  });
}

template <bool kLayer>
void mix_row_backward(const StreamMix& mix, const StreamMixGradients& g, int64_t row) {
  const int64_t cols = mix.cols;
  const int64_t at = row * cols;
  const PerStream<const float> streams = rows_at(g.streams, at);
  const PerStream<const float> through = rows_at(g.through, at);
  PerStream<const float> d_outputs = rows_at(g.d_outputs, at);
  const int64_t matrix_at = coefficients_at(mix, row, mix.outputs * mix.streams);
  const float* const matrix = mix.matrix + matrix_at;
  MixNorm<kLayer> norm(mix.norm, row);
  if (norm.present()) {
    mixed(mix, matrix, streams).sum(cols, g.scratch);
    norm_row_backward(norm, d_outputs[0], g.norm, cols, g.scratch, g.scratch + cols);
    d_outputs[0] = g.scratch;
  }

  double dots[kMaxMixedStreams];
  const auto give = [&](float* to, int count) {
    for (int k = 0; k < count; ++k) to[k] = static_cast<float>(mix.each_row ? dots[k] : to[k] + dots[k]);
  };
  for (int j = 0; j < mix.outputs; ++j) {
    dots_with(mix.streams, d_outputs[static_cast<size_t>(j)], streams, cols, dots);
    give(g.d_matrix + matrix_at + j * mix.streams, mix.streams);
  }
  for (int i = 0; i < mix.streams; ++i) {
    const auto stream = static_cast<size_t>(i);
    WeightedRows sum;
    if (through[stream] != nullptr) sum.add(through[stream], 1);
    for (int j = 0; j < mix.outputs; ++j) sum.add(d_outputs[static_cast<size_t>(j)], matrix[j * mix.streams + i]);
    sum.sum(cols, g.d_streams[stream] + at);
  }
  if (g.branch == nullptr) return;
  const int64_t weights_at = coefficients_at(mix, row, mix.outputs);
  dots_with(mix.outputs, g.branch + at, d_outputs, cols, dots);
  give(g.d_branch_weights + weights_at, mix.outputs);
  WeightedRows sum;
  for (int j = 0; j < mix.outputs; ++j) sum.add(d_outputs[static_cast<size_t>(j)], mix.branch_weights[weights_at + j]);
  sum.sum(cols, g.d_branch + at);
}

void stream_mix_forward(const StreamMix& mix, const StreamMixRows& rows, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    mix.layer ? mix_row<true>(mix, rows, row) : mix_row<false>(mix, rows, row);
  }
}

void stream_mix_backward(const StreamMix& mix, const StreamMixGradients& gradients, int64_t row_begin,
                         int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    mix.layer ? mix_row_backward<true>(mix, gradients, row) : mix_row_backward<false>(mix, gradients, row);
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(stream_mix_forward);
HWY_EXPORT(stream_mix_backward);

void stream_mix_forward(const StreamMix& mix, const StreamMixRows& rows, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(stream_mix_forward)(mix, rows, row_begin, row_end);
}

void stream_mix_backward(const StreamMix& mix, const StreamMixGradients& gradients, int64_t row_begin,
                         int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(stream_mix_backward)(mix, gradients, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

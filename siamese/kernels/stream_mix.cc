#include "siamese/kernels/stream_mix.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/stream_mix.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/norm_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// A row of forward and of backward is made of weighted sums of rows (the outputs, ds_i, dz) and of dot products (dM,
// db). Each array's row is read once from memory and then, for each sum it is part of, from the nearest cache.
//
// Who owns what: every array is the caller's. PerStream holds a pointer for each stream or output, those past the
// count unused; rows_at makes pointers to one row of them. With a norm, backward computes the row before the norm again
// in the thread's scratch, where its gradient then takes the place of d_outputs[0].

// A weighted sum of rows; of none: 0.
class WeightedRows {
 public:
  void add(const float* row, float weight) {
    rows_[count_] = row;
    weights_[count_++] = weight;
  }

  void sum(int64_t cols, float* to) const {
    switch (count_) {
      case 0:
        return sum_of<0>(cols, to);
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
      auto sum = hn::Zero(d);
      if constexpr (kCount > 0) sum = hn::Mul(access.load(d, r0 + i), w0);
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
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = row_or_null(arrays[i], at);
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

// Where an output's row is made.
HWY_INLINE float* output_row(const StreamMixRows& rows, int output, int64_t at) {
  return rows.half_output != nullptr ? rows.scratch : rows.outputs[static_cast<size_t>(output)] + at;
}

template <bool kLayer>
void mix_row(const StreamMix& mix, const StreamMixRows& rows, int64_t row) {
  const int64_t at = row * mix.cols;
  const PerStream<const float> streams = rows_at(rows.streams, at);
  const float* const matrix = mix.matrix + coefficients_at(mix, row, mix.outputs * mix.streams);
  for (int j = 0; j < mix.outputs; ++j) {
    WeightedRows sum = mixed(mix, matrix + j * mix.streams, streams);
    if (rows.branch != nullptr) {
      sum.add(rows.branch + at, mix.branch_weights[coefficients_at(mix, row, mix.outputs) + j]);
    }
    sum.sum(mix.cols, output_row(rows, j, at));
  }
  AnyRowNorm<kLayer> norm(mix.norm, row, nullptr);
  if (norm.present()) norm_row(norm, mix.cols, output_row(rows, 0, at));
  if (rows.half_output != nullptr) convert_row(rows.scratch, mix.cols, rows.half_output + at);
}

// The outputs whose gradient came, without gaps: the gradient's row and which output it is.
struct GivenGradients {
  int count = 0;
  PerStream<const float> rows{};
  std::array<int, kMaxMixedStreams> outputs{};
};

HWY_INLINE GivenGradients given_gradients(const StreamMix& mix, const StreamMixGradients& g, int64_t at) {
  GivenGradients given;
  if (g.half_d_output != nullptr) {
    float* const row = g.scratch + 2 * mix.cols;
    convert_row(g.half_d_output + at, mix.cols, row);
    given.rows[0] = row;
    given.count = 1;
    return given;
  }
  for (int j = 0; j < mix.outputs; ++j) {
    const float* const rows = g.d_outputs[static_cast<size_t>(j)];
    if (rows == nullptr) continue;
    given.rows[static_cast<size_t>(given.count)] = rows + at;
    given.outputs[static_cast<size_t>(given.count++)] = j;
  }
  return given;
}

// A row's dot products put into, or added to, the gradient of M or b. (The compiler does not know that count is at most
// kMaxMixedStreams, and would warn.)
HWY_INLINE void give(const StreamMix& mix, const double* dots, int count, float* to) {
  for (int k = 0; k < count && k < kMaxMixedStreams; ++k) {
    to[k] = static_cast<float>(mix.each_row ? dots[k] : to[k] + dots[k]);
  }
}

HWY_INLINE void matrix_gradient(const StreamMix& mix, const GivenGradients& given,
                                const PerStream<const float>& streams, float* d_matrix) {
  if (mix.each_row) std::fill_n(d_matrix, mix.outputs * mix.streams, 0.0F);
  double dots[kMaxMixedStreams];
  for (size_t k = 0; k < static_cast<size_t>(given.count); ++k) {
    dots_with(mix.streams, given.rows[k], streams, mix.cols, dots);
    give(mix, dots, mix.streams, d_matrix + given.outputs[k] * mix.streams);
  }
}

HWY_INLINE void branch_weights_gradient(const StreamMix& mix, const GivenGradients& given, const float* branch,
                                        float* d_weights) {
  if (mix.each_row) std::fill_n(d_weights, mix.outputs, 0.0F);
  if (given.count == 0) return;
  double dots[kMaxMixedStreams];
  dots_with(given.count, branch, given.rows, mix.cols, dots);
  for (size_t k = 0; k < static_cast<size_t>(given.count); ++k) give(mix, dots + k, 1, d_weights + given.outputs[k]);
}

// to = start + sum_j weights[stride j] D_j, of the gradients that came; start null: 0.
HWY_INLINE void gradient_sum(const GivenGradients& given, const float* start, const float* weights, int stride,
                             int64_t cols, float* to) {
  WeightedRows sum;
  if (start != nullptr) sum.add(start, 1);
  for (size_t k = 0; k < static_cast<size_t>(given.count); ++k) {
    sum.add(given.rows[k], weights[stride * given.outputs[k]]);
  }
  sum.sum(cols, to);
}

template <bool kLayer>
void mix_row_backward(const StreamMix& mix, const StreamMixGradients& g, int64_t row) {
  const int64_t cols = mix.cols;
  const int64_t at = row * cols;
  const int64_t matrix_at = coefficients_at(mix, row, mix.outputs * mix.streams);
  const int64_t weights_at = coefficients_at(mix, row, mix.outputs);
  const PerStream<const float> streams = rows_at(g.streams, at);
  const float* const matrix = mix.matrix + matrix_at;
  GivenGradients given = given_gradients(mix, g, at);
  AnyRowNorm<kLayer> norm(mix.norm, row, nullptr);
  if (norm.present() && given.count > 0) {
    mixed(mix, matrix, streams).sum(cols, g.scratch);
    norm_row_backward(norm, given.rows[0], g.norm, cols, g.scratch, g.scratch + cols);
    given.rows[0] = g.scratch;
  }
  if (g.d_matrix != nullptr) matrix_gradient(mix, given, streams, g.d_matrix + matrix_at);
  for (int i = 0; i < mix.streams; ++i) {
    const auto stream = static_cast<size_t>(i);
    if (g.d_streams[stream] == nullptr) continue;
    gradient_sum(given, row_or_null(g.through[stream], at), matrix + i, mix.streams, cols, g.d_streams[stream] + at);
  }
  if (g.branch == nullptr) return;
  if (g.d_branch_weights != nullptr) {
    branch_weights_gradient(mix, given, g.branch + at, g.d_branch_weights + weights_at);
  }
  if (g.d_branch != nullptr) {
    gradient_sum(given, nullptr, mix.branch_weights + weights_at, 1, cols, g.d_branch + at);
  }
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

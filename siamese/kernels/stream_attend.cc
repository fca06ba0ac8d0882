#include "siamese/kernels/stream_attend.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/stream_attend.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/exp2-inl.h"
#include "siamese/kernels/norm_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// A stream's row is read from memory once, by the first loop that needs it; what follows finds it in the nearest cache.
// `at` is where a row begins in every array of rows.

// to = sum_j weights[j] rows[j], and what stands in `to` already where kAdd. Four vectors at a time, so that a weight
// is set once for all of them.
template <bool kAdd>
HWY_INLINE void weighted_sum(const float* const* rows, int64_t at, const float* weights, int64_t count, int64_t cols,
                             float* to) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= cols; i += 4 * lanes) {
    float* const out = to + i;
    auto sum0 = kAdd ? hn::LoadU(d, out) : hn::Zero(d);
    auto sum1 = kAdd ? hn::LoadU(d, out + lanes) : hn::Zero(d);
    auto sum2 = kAdd ? hn::LoadU(d, out + 2 * lanes) : hn::Zero(d);
    auto sum3 = kAdd ? hn::LoadU(d, out + 3 * lanes) : hn::Zero(d);
    for (int64_t j = 0; j < count; ++j) {
      const float* const row = rows[j] + at + i;
      const auto weight = hn::Set(d, weights[j]);
      sum0 = hn::MulAdd(hn::LoadU(d, row), weight, sum0);
      sum1 = hn::MulAdd(hn::LoadU(d, row + lanes), weight, sum1);
      sum2 = hn::MulAdd(hn::LoadU(d, row + 2 * lanes), weight, sum2);
      sum3 = hn::MulAdd(hn::LoadU(d, row + 3 * lanes), weight, sum3);
    }
    hn::StoreU(sum0, d, out);
    hn::StoreU(sum1, d, out + lanes);
    hn::StoreU(sum2, d, out + 2 * lanes);
    hn::StoreU(sum3, d, out + 3 * lanes);
  }
  for_each_vector(i, cols, [&](int64_t c, auto access) HWY_ATTR {
    auto sum = kAdd ? access.load(d, to + c) : hn::Zero(d);
    for (int64_t j = 0; j < count; ++j) {
      sum = hn::MulAdd(access.load(d, rows[j] + at + c), hn::Set(d, weights[j]), sum);
    }
    access.store(sum, d, to + c);
  });
}

// The sum of the squares of a row and its product with the query, in one look.
HWY_INLINE TwoSums squares_and_product(const float* row, const float* query, int64_t cols) {
  const Floats d;
  RowSums<false> squares, products;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto value = access.load(d, row + i);
    prefetch(i, row + cols);  // the next row's
    squares.add(value, value);
    products.add(value, access.load(d, query + i));
  });
  return {squares.total().second, products.total().second};
}

HWY_INLINE double dot(const float* a, const float* b, int64_t cols) {
  const Floats d;
  RowSums<false> products;
  for_each_vector(0, cols,
                  [&](int64_t i, auto access) HWY_ATTR { products.add(access.load(d, a + i), access.load(d, b + i)); });
  return products.total().second;
}

// Of n scores, of which the largest has weight 1 before the division: nothing overflows.
HWY_INLINE void softmax(const float* scores, int64_t n, float* weights) {
  const Floats d;
  const float top = *std::max_element(scores, scores + n);
  for_each_vector(0, n, [&](int64_t j, auto access) HWY_ATTR {
    access.store(exp_of_negative(hn::Sub(access.load(d, scores + j), hn::Set(d, top))), d, weights + j);
  });
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(weights[j]);
  for (int64_t j = 0; j < n; ++j) weights[j] = static_cast<float>(static_cast<double>(weights[j]) / sum);
}

// The norm with this row's statistics.
template <bool kLayer>
HWY_INLINE AnyRowNorm<kLayer> norm_at(const StreamAttend& attend, float* statistics) {
  RowNorm norm = attend.norm;
  norm.mean = statistics + 2 * attend.streams;
  norm.rstd = norm.mean + (kLayer ? 1 : 0);
  return AnyRowNorm<kLayer>(norm, 0, nullptr);
}

template <bool kLayer>
void attend_row(const StreamAttend& attend, const StreamAttendRows& rows, int64_t row) {
  const Floats d;
  const int64_t cols = attend.cols;
  const int64_t n = attend.streams;
  const int64_t at = row * cols;
  float* const scores = attend.statistics + row * attend.statistics_cols();
  float* const scales = scores + n;
  if (rows.branch != nullptr) {
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Add(access.load(d, rows.last + at + i), access.load(d, rows.branch + at + i)), d,
                   rows.sum + at + i);
    });
  }
  for (int64_t j = 0; j < n; ++j) {
    const TwoSums sums = squares_and_product(rows.streams[j] + at, attend.query, cols);
    const double scale = 1 / std::sqrt(sums.first / static_cast<double>(cols) + static_cast<double>(attend.eps));
    scales[j] = static_cast<float>(scale);
    scores[j] = static_cast<float>(scale * sums.second);
  }
  softmax(scores, n, rows.scratch);
  float* const input = rows.half_input != nullptr ? rows.scratch + n : rows.input + at;
  weighted_sum<false>(rows.streams, at, rows.scratch, n, cols, input);
  auto norm = norm_at<kLayer>(attend, scores);
  if (norm.present()) norm_row(norm, cols, input);
  if (rows.half_input != nullptr) convert_row(input, cols, rows.half_input + at);
}

// What a row of one stream's gradient is made of: T + weight D + for_query q - for_stream V.
struct StreamGradient {
  const float* through;  // T; null: 0
  const float* d_sum;    // D
  const float* query;
  const float* stream;
  float weight, for_query, for_stream;
};

template <bool kThrough>
HWY_INLINE void stream_gradient(const StreamGradient& from, int64_t cols, bool past_cache, float* to) {
  const Floats d;
  const auto weight = hn::Set(d, from.weight);
  const auto for_query = hn::Set(d, from.for_query);
  const auto for_stream = hn::Set(d, from.for_stream);
  const float *const through = from.through, *const d_sum = from.d_sum;
  const float *const query = from.query, *const stream = from.stream;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    auto sum = hn::Mul(access.load(d, d_sum + i), weight);
    sum = hn::MulAdd(access.load(d, query + i), for_query, sum);
    sum = hn::NegMulAdd(access.load(d, stream + i), for_stream, sum);
    if constexpr (kThrough) sum = hn::Add(sum, access.load(d, through + i));
    store_result(access, past_cache, sum, to + i);
  });
}

// A row whose input nobody used: what comes back through the streams is all.
HWY_INLINE void pass_through(const StreamAttend& attend, const StreamAttendGradients& g, int64_t at) {
  if (g.d_streams == nullptr) return;
  for (int64_t j = 0; j < attend.streams; ++j) {
    if (g.d_streams[j] == nullptr) continue;
    const float* const through = g.through == nullptr ? nullptr : g.through[j];
    if (through == nullptr) {
      std::fill_n(g.d_streams[j] + at, attend.cols, 0.0F);
    } else {
      std::copy_n(through + at, attend.cols, g.d_streams[j] + at);
    }
  }
}

template <bool kLayer>
void attend_row_backward(const StreamAttend& attend, const StreamAttendGradients& g, int64_t row) {
  const int64_t cols = attend.cols;
  const int64_t n = attend.streams;
  const int64_t at = row * cols;
  if (g.d_input == nullptr && g.half_d_input == nullptr) return pass_through(attend, g, at);
  float* const scores = attend.statistics + row * attend.statistics_cols();
  const float* const scales = scores + n;
  float* const widened = g.scratch + 2 * cols;
  float* const weights = widened + cols;
  float* const query_weights = weights + n;  // e_j r_j
  softmax(scores, n, weights);
  if (g.half_d_input != nullptr) convert_row(g.half_d_input + at, cols, widened);
  const float* d_sum = g.half_d_input != nullptr ? widened : g.d_input + at;
  auto norm = norm_at<kLayer>(attend, scores);
  if (norm.present()) {
    weighted_sum<false>(g.streams, at, weights, n, cols, g.scratch);
    norm_row_backward(norm, d_sum, g.norm, cols, g.scratch, g.scratch + cols);
    d_sum = g.scratch;
  }
  double mean = 0;  // sum_k a_k u_k
  for (int64_t j = 0; j < n; ++j) {
    g.dots[j] = dot(d_sum, g.streams[j] + at, cols);
    mean += static_cast<double>(weights[j]) * g.dots[j];
  }
  for (int64_t j = 0; j < n; ++j) {
    const double e = static_cast<double>(weights[j]) * (g.dots[j] - mean);
    query_weights[j] = static_cast<float>(e * static_cast<double>(scales[j]));
    if (g.d_streams == nullptr || g.d_streams[j] == nullptr) continue;
    const float* const through = g.through == nullptr ? nullptr : row_or_null(g.through[j], at);
    const float for_stream = query_weights[j] * scores[j] * scales[j] / static_cast<float>(cols);
    const StreamGradient from{through,          d_sum,     attend.query, g.streams[j] + at, weights[j],
                              query_weights[j], for_stream};
    const bool past_cache = can_store_past_cache(g.d_streams[j], cols);
    through == nullptr ? stream_gradient<false>(from, cols, past_cache, g.d_streams[j] + at)
                       : stream_gradient<true>(from, cols, past_cache, g.d_streams[j] + at);
  }
  if (g.d_query != nullptr) weighted_sum<true>(g.streams, at, query_weights, n, cols, g.d_query);
}

void stream_attend_forward(const StreamAttend& attend, const StreamAttendRows& rows, int64_t row_begin,
                           int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    attend.layer ? attend_row<true>(attend, rows, row) : attend_row<false>(attend, rows, row);
  }
}

void stream_attend_backward(const StreamAttend& attend, const StreamAttendGradients& gradients, int64_t row_begin,
                            int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    attend.layer ? attend_row_backward<true>(attend, gradients, row)
                 : attend_row_backward<false>(attend, gradients, row);
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(stream_attend_forward);
HWY_EXPORT(stream_attend_backward);

void stream_attend_forward(const StreamAttend& attend, const StreamAttendRows& rows, int64_t row_begin,
                           int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(stream_attend_forward)(attend, rows, row_begin, row_end);
}

void stream_attend_backward(const StreamAttend& attend, const StreamAttendGradients& gradients, int64_t row_begin,
                            int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(stream_attend_backward)(attend, gradients, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

#include "siamese/kernels/cross_entropy.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {
namespace cross_entropy_rows {

// The largest of a row; a NaN in it may or may not be seen here, the sum of exponentials shows it.
HWY_INLINE float largest(const float* x, int64_t count) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best = hn::Set(d, x[0]);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) best = hn::Max(best, hn::LoadU(d, x + i));
  float top = hn::GetLane(hn::MaxOfLanes(d, best));
  for (; i < count; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

// exp(x - top) for x <= top. Far below, where Highway's Exp would leave its domain, it is zero; a NaN stays one.
HWY_INLINE hn::Vec<Floats> exp_below(hn::Vec<Floats> x, hn::Vec<Floats> top) {
  const Floats d;
  const auto shifted = hn::Sub(x, top);
  const auto lowest = hn::Set(d, -87.0F);
  const auto e = hn::Exp(d, hn::Max(shifted, lowest));
  return hn::IfThenElse(hn::IsNaN(shifted), shifted, hn::IfThenZeroElse(hn::Lt(shifted, lowest), e));
}

// sum exp(x - top), each term also stored when `to` is given. Short runs in float, then double: the order of a row
// is fixed and its rounding error does not grow with the vocabulary.
template <bool kStore>
HWY_INLINE double sum_of_exponentials(const float* x, float top, int64_t count, float* to) {
  const Floats d;
  constexpr int64_t kRun = 4096;
  const auto shift = hn::Set(d, top);
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kRun) {
    const int64_t end = count - begin < kRun ? count : begin + kRun;
    auto sum = hn::Zero(d);
    for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR {
      const auto e = access.zero_outside(d, exp_below(access.load(d, x + i), shift));
      if constexpr (kStore) access.store(e, d, to + i);
      sum = hn::Add(sum, e);
    });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total;
}

template <bool kGradient>
HWY_INLINE void one_row(const CrossEntropyRows& rows, double nll_scale, double z_scale, int64_t row) {
  const Floats d;
  float* const logits = rows.logits + row * rows.vocab;
  const int64_t target = rows.targets[row];
  const float top = largest(logits, rows.vocab);
  const double at_target = static_cast<double>(logits[target]);
  const double sum = sum_of_exponentials<kGradient>(logits, top, rows.vocab, logits);
  const double normalizer = static_cast<double>(top) + std::log(sum);
  rows.nll[row] = static_cast<float>(normalizer - at_target);
  rows.z[row] = static_cast<float>(normalizer * normalizer);
  if constexpr (kGradient) {
    const double weight = rows.weights == nullptr ? 1 : static_cast<double>(rows.weights[row]);
    const auto factor = hn::Set(d, static_cast<float>(weight * (nll_scale + 2 * z_scale * normalizer) / sum));
    for_each_vector(0, rows.vocab, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(access.load(d, logits + i), factor), d, logits + i);
    });
    logits[target] -= static_cast<float>(weight * nll_scale);
  }
}

}  // namespace cross_entropy_rows

void cross_entropy(const CrossEntropyRows& rows, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) cross_entropy_rows::one_row<false>(rows, 0, 0, row);
}

void cross_entropy_with_gradient(const CrossEntropyRows& rows, double nll_scale, double z_scale, int64_t row_begin,
                                 int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    cross_entropy_rows::one_row<true>(rows, nll_scale, z_scale, row);
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(cross_entropy);
HWY_EXPORT(cross_entropy_with_gradient);

void cross_entropy(const CrossEntropyRows& rows, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(cross_entropy)(rows, row_begin, row_end);
}

void cross_entropy_with_gradient(const CrossEntropyRows& rows, double nll_scale, double z_scale, int64_t row_begin,
                                 int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_with_gradient)(rows, nll_scale, z_scale, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

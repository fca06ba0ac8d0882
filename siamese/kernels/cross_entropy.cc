#include "siamese/kernels/cross_entropy.h"

#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/exp2-inl.h"
#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {
namespace cross_entropy_rows {

// The largest of a row; a NaN in it may or may not be seen here, the sum of exponentials shows it.
template <class T>
HWY_INLINE float largest(const T* x, int64_t count) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best = hn::Set(d, to_float(x[0]));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) best = hn::Max(best, WholeVector().load(d, x + i));
  float top = hn::GetLane(hn::MaxOfLanes(d, best));
  for (; i < count; ++i) top = to_float(x[i]) > top ? to_float(x[i]) : top;
  return top;
}

// sum exp(x - top), each term also stored when kStore. Short runs in float, then double: the order of a row
// is fixed and its rounding error does not grow with the vocabulary.
template <bool kStore, class T>
HWY_INLINE double sum_of_exponentials(const T* x, float top, int64_t count, T* to) {
  const Floats d;
  const int64_t run = 64 * static_cast<int64_t>(hn::Lanes(d));  // of so many additions to a lane
  const auto shift = hn::Set(d, top);
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += run) {
    const int64_t end = count - begin < run ? count : begin + run;
    auto sum = hn::Zero(d);
    for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR {
      const auto e = access.zero_outside(d, exp_of_negative(hn::Sub(access.load(d, x + i), shift)));
      if constexpr (kStore) access.store(e, d, to + i);
      sum = hn::Add(sum, e);
    });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total;
}

// p factor - onehot(target) share in place of the logits, from the exponentials that stand there; bfloat16 has not the
// digits for those and makes them again, so that the gradient is rounded once.
template <class T>
HWY_INLINE void gradient_row(T* logits, int64_t vocab, int64_t target, float top, float factor, float share) {
  const Floats d;
  const auto times = hn::Set(d, factor);
  const auto shift = hn::Set(d, top);
  const auto shared = [&](auto access, int64_t i) HWY_ATTR {
    const auto here = access.load(d, logits + i);
    if constexpr (std::is_same_v<T, float>) return hn::Mul(here, times);
    return hn::Mul(exp_of_negative(hn::Sub(here, shift)), times);
  };
  const float at_target = hn::GetLane(shared(PartVector{1}, target)) - share;
  for_each_vector(0, vocab, [&](int64_t i, auto access) HWY_ATTR { access.store(shared(access, i), d, logits + i); });
  PartVector{1}.store(hn::Set(d, at_target), d, logits + target);
}

template <bool kGradient, class T>
HWY_INLINE void one_row(const CrossEntropyRowsOf<T>& rows, double nll_scale, double z_scale, int64_t row) {
  T* const logits = rows.logits + row * rows.vocab;
  const int64_t target = rows.targets[row];
  const float top = largest(logits, rows.vocab);
  const double at_target = static_cast<double>(to_float(logits[target]));
  const double sum = sum_of_exponentials < kGradient && std::is_same_v < T, float >> (logits, top, rows.vocab, logits);
  const double normalizer = static_cast<double>(top) + std::log(sum);
  rows.nll[row] = static_cast<float>(normalizer - at_target);
  rows.z[row] = static_cast<float>(normalizer * normalizer);
  if constexpr (kGradient) {
    const double weight = rows.weights == nullptr ? 1 : static_cast<double>(rows.weights[row]);
    gradient_row(logits, rows.vocab, target, top,
                 static_cast<float>(weight * (nll_scale + 2 * z_scale * normalizer) / sum),
                 static_cast<float>(weight * nll_scale));
  }
}

}  // namespace cross_entropy_rows

template <bool kGradient, class T>
void all_rows(const CrossEntropyRowsOf<T>& rows, double nll_scale, double z_scale, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    cross_entropy_rows::one_row<kGradient>(rows, nll_scale, z_scale, row);
  }
}

void cross_entropy_of_floats(const CrossEntropyRows& rows, int64_t row_begin, int64_t row_end) {
  all_rows<false>(rows, 0, 0, row_begin, row_end);
}
void cross_entropy_of_bfloat16(const CrossEntropyRowsOf<Bfloat16>& rows, int64_t row_begin, int64_t row_end) {
  all_rows<false>(rows, 0, 0, row_begin, row_end);
}
void cross_entropy_gradient_of_floats(const CrossEntropyRows& rows, double nll_scale, double z_scale, int64_t row_begin,
                                      int64_t row_end) {
  all_rows<true>(rows, nll_scale, z_scale, row_begin, row_end);
}
void cross_entropy_gradient_of_bfloat16(const CrossEntropyRowsOf<Bfloat16>& rows, double nll_scale, double z_scale,
                                        int64_t row_begin, int64_t row_end) {
  all_rows<true>(rows, nll_scale, z_scale, row_begin, row_end);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(cross_entropy_of_floats);
HWY_EXPORT(cross_entropy_of_bfloat16);
HWY_EXPORT(cross_entropy_gradient_of_floats);
HWY_EXPORT(cross_entropy_gradient_of_bfloat16);

void cross_entropy(const CrossEntropyRows& rows, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_of_floats)(rows, row_begin, row_end);
}

void cross_entropy(const CrossEntropyRowsOf<Bfloat16>& rows, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_of_bfloat16)(rows, row_begin, row_end);
}

void cross_entropy_with_gradient(const CrossEntropyRows& rows, double nll_scale, double z_scale, int64_t row_begin,
                                 int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_gradient_of_floats)(rows, nll_scale, z_scale, row_begin, row_end);
}

void cross_entropy_with_gradient(const CrossEntropyRowsOf<Bfloat16>& rows, double nll_scale, double z_scale,
                                 int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(cross_entropy_gradient_of_bfloat16)(rows, nll_scale, z_scale, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

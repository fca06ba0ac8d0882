// Powers of two and of e, for softmax; included once per SIMD target.
#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_EXP2_INL_H_
#undef SIAMESE_KERNELS_EXP2_INL_H_
#else
#define SIAMESE_KERNELS_EXP2_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

inline constexpr float kLog2E = 1.44269504088896341F;
inline constexpr float kLn2 = 0.693147180559945309F;

// Adding this rounds a float to an integer n and leaves n + 127, which is the exponent of 2^n, in the lowest bits.
inline constexpr float kRoundingShift = 12582912.0F + 127.0F;  // 1.5 * 2^23 + 127

// 2^f for |f| <= 1/2 by a polynomial, minimax in relative error (2e-9), exact at 0; its coefficients, the last one
// first, for a variable of which f is `unit` times as much.
struct PowerSeries {
  explicit constexpr PowerSeries(double unit) {
    const double of_f[7] = {1,
                            0.6931471824645996,
                            0.24022647738456726,
                            0.055503323674201965,
                            0.00961843691766262,
                            0.0013398873852565885,
                            0.00015353361959569156};
    double power = 1;
    for (int i = 0; i < 7; ++i, power *= unit) last_first[6 - i] = static_cast<float>(of_f[i] * power);
  }
  float last_first[7] = {};
};
inline constexpr PowerSeries kSeriesOfTwo{1};
inline constexpr PowerSeries kSeriesOfE{1.44269504088896340736};

// 2^n times the series; shifted = n + kRoundingShift.
HWY_INLINE hn::Vec<Floats> scaled_power(hn::Vec<Floats> shifted, const PowerSeries& series, hn::Vec<Floats> rest) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  auto sum = hn::Set(d, series.last_first[0]);
#pragma GCC unroll 8
  for (int i = 1; i < 7; ++i) sum = hn::MulAdd(sum, rest, hn::Set(d, series.last_first[i]));
  return hn::Mul(sum, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

// 2^x for x <= 0 and a little above. Below the smallest normal number: 0. NaN stays NaN.
HWY_INLINE hn::Vec<Floats> exp2_of_negative(hn::Vec<Floats> x) {
  const Floats d;
  const auto shift = hn::Set(d, kRoundingShift);
  const auto shifted = hn::Add(x, shift);
  const auto f = hn::Sub(x, hn::Sub(shifted, shift));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0F)), scaled_power(shifted, kSeriesOfTwo, f));
}

// e^x likewise: x - n ln(2) in two parts, the first exact, since x log2(e) rounded would be off by as much as x is
// large.
HWY_INLINE hn::Vec<Floats> exp_of_negative(hn::Vec<Floats> x) {
  const Floats d;
  const auto shift = hn::Set(d, kRoundingShift);
  const auto shifted = hn::MulAdd(x, hn::Set(d, kLog2E), shift);
  const auto n = hn::Sub(shifted, shift);
  auto rest = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  rest = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), rest);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0F * kLn2)), scaled_power(shifted, kSeriesOfE, rest));
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

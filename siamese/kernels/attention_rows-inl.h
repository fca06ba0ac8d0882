// The rows of attention, included once per SIMD target: a head's row with norm and RoPE into scratch and its gradient
// back out of it, exp2, the softmax of a row, transposing.
#include <cmath>
#include <limits>

#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_
#undef SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_
#else
#define SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

inline constexpr float kLog2E = 1.44269504088896341F;
inline constexpr float kLn2 = 0.693147180559945309F;

// What stands between a row of qkv and the q, k or v of the equations.
struct HeadRows {
  int64_t dim;
  int64_t padded;     // dim in whole vectors; what is padded is zero
  const float* gain;  // null: no norm
  const float* cos;   // null: no rotation
  const float* sin;
  float eps;
  float factor;  // on the row, after norm and rotation
};

// 2^x for x <= 0 and a little above: 2^x = 2^n 2^f, |f| <= 1/2, the latter by a polynomial (minimax in relative error,
// 2e-9, exact at 0). Adding `shift` rounds x to the integer n and leaves n + 127, which is the exponent of 2^n, in the
// lowest bits. Below the smallest normal number: 0. NaN stays NaN.
HWY_INLINE hn::Vec<Floats> exp2_of_negative(hn::Vec<Floats> x) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto shift = hn::Set(d, 12582912.0F + 127.0F);  // 1.5 * 2^23 + 127
  const auto shifted = hn::Add(x, shift);
  const auto f = hn::Sub(x, hn::Sub(shifted, shift));
  auto series = hn::Set(d, 0.00015353361959569156F);
  series = hn::MulAdd(series, f, hn::Set(d, 0.0013398873852565885F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.00961843691766262F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.055503323674201965F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.24022647738456726F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.6931471824645996F));
  series = hn::MulAdd(series, f, hn::Set(d, 1.0F));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0F)), hn::Mul(series, power));
}

// The lanes of the vector at column `first` that lie before column `end`; any end.
HWY_INLINE hn::Mask<Floats> lanes_before(int64_t first, int64_t end) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  return hn::FirstN(d, static_cast<size_t>(HWY_MAX(int64_t{0}, HWY_MIN(lanes, end - first))));
}

// 1 / rms of a head's row; 1 without a norm.
template <class T>
HWY_INLINE float head_rstd(const HeadRows& rows, const T* x) {
  if (rows.gain == nullptr) return 1;
  const double squares = sum_in_double(0, rows.dim, [&](auto sum, int64_t i, auto access) HWY_ATTR {
    const auto value = hn::PromoteTo(Doubles(), access.load(FloatsOfDoubles(), x + i));
    return hn::MulAdd(value, value, sum);
  });
  return static_cast<float>(1 / std::sqrt(squares / static_cast<double>(rows.dim) + static_cast<double>(rows.eps)));
}

// y = factor RoPE(norm(x)), zero padded. `token` chooses the angles. Returns the norm's 1 / rms.
template <class T>
HWY_INLINE float head_row(const HeadRows& rows, const T* HWY_RESTRICT x, int64_t token, float* HWY_RESTRICT y) {
  const Floats d;
  const float rstd = head_rstd(rows, x);
  const auto scale = hn::Set(d, rstd);
  const auto factor = hn::Set(d, rows.factor);
  const auto normed = [&](auto access, int64_t i) HWY_ATTR {
    const auto value = access.load(d, x + i);
    return rows.gain == nullptr ? value : hn::Mul(hn::Mul(value, scale), access.load(d, rows.gain + i));
  };
  for (int64_t i = rows.dim; i < rows.padded; ++i) y[i] = 0;
  if (rows.cos == nullptr) {
    for_each_vector(0, rows.dim, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(normed(access, i), factor), d, y + i);
    });
    return rstd;
  }
  const int64_t half = rows.dim / 2;
  for_each_vector(0, half, [&](int64_t i, auto access) HWY_ATTR {
    const auto c = hn::Mul(access.load(d, rows.cos + token * half + i), factor);
    const auto s = hn::Mul(access.load(d, rows.sin + token * half + i), factor);
    const auto first = normed(access, i);
    const auto second = normed(access, half + i);
    access.store(hn::NegMulAdd(second, s, hn::Mul(first, c)), d, y + i);
    access.store(hn::MulAdd(first, s, hn::Mul(second, c)), d, y + half + i);
  });
  return rstd;
}

// dy turned back by the angles of a token.
HWY_INLINE void rotate_back(const HeadRows& rows, int64_t token, float* HWY_RESTRICT dy) {
  const Floats d;
  const int64_t half = rows.dim / 2;
  for_each_vector(0, half, [&](int64_t i, auto access) HWY_ATTR {
    const auto c = access.load(d, rows.cos + token * half + i);
    const auto s = access.load(d, rows.sin + token * half + i);
    const auto first = access.load(d, dy + i);
    const auto second = access.load(d, dy + half + i);
    access.store(hn::MulAdd(second, s, hn::Mul(first, c)), d, dy + i);
    access.store(hn::NegMulAdd(first, s, hn::Mul(second, c)), d, dy + half + i);
  });
}

// The way back: dx from x and factor dy, which may be overwritten; dgain (null: not wanted) is added to.
template <class T>
HWY_INLINE void head_row_backward(const HeadRows& rows, const T* HWY_RESTRICT x, float rstd, int64_t token,
                                  float* HWY_RESTRICT dy, T* HWY_RESTRICT dx, float* HWY_RESTRICT dgain) {
  const Floats d;
  const bool past_cache = can_store_past_cache(dx, rows.dim);
  const auto factor = hn::Set(d, rows.factor);
  if (rows.cos != nullptr) rotate_back(rows, token, dy);
  if (rows.gain == nullptr) {
    for_each_vector(0, rows.dim, [&](int64_t i, auto access) HWY_ATTR {
      store_result(access, past_cache, hn::Mul(access.load(d, dy + i), factor), dx + i);
    });
    return;
  }
  const Doubles dd;
  const FloatsOfDoubles df;
  const double dot = sum_in_double(0, rows.dim, [&](auto sum, int64_t i, auto access) HWY_ATTR {
    const auto g = hn::Mul(access.load(df, dy + i), access.load(df, rows.gain + i));
    return hn::MulAdd(hn::PromoteTo(dd, g), hn::PromoteTo(dd, access.load(df, x + i)), sum);
  });
  const double mean =
      dot * static_cast<double>(rows.factor) * static_cast<double>(rstd) / static_cast<double>(rows.dim);
  const auto projection = hn::Set(d, static_cast<float>(mean));
  const auto scale = hn::Set(d, rstd);
  for_each_vector(0, rows.dim, [&](int64_t i, auto access) HWY_ATTR {
    const auto dy_i = hn::Mul(access.load(d, dy + i), factor);
    const auto n = hn::Mul(access.load(d, x + i), scale);
    const auto g = hn::Mul(dy_i, access.load(d, rows.gain + i));
    if (dgain != nullptr) access.store(hn::MulAdd(dy_i, n, access.load(d, dgain + i)), d, dgain + i);
    store_result(access, past_cache, hn::Mul(scale, hn::NegMulAdd(n, projection, g)), dx + i);
  });
}

// to[col][row] = from[row][col]; both have strides.
HWY_INLINE void transpose(const float* HWY_RESTRICT from, int64_t from_stride, int64_t rows, int64_t cols,
                          float* HWY_RESTRICT to, int64_t to_stride) {
  int64_t row = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> d2;
  for (; row + 4 <= rows; row += 4) {
    const float* const in = from + row * from_stride;
    int64_t col = 0;
    for (; col + 4 <= cols; col += 4) {
      const auto r0 = hn::LoadU(d4, in + col);
      const auto r1 = hn::LoadU(d4, in + from_stride + col);
      const auto r2 = hn::LoadU(d4, in + 2 * from_stride + col);
      const auto r3 = hn::LoadU(d4, in + 3 * from_stride + col);
      const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1));
      const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
      const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1));
      const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
      float* const out = to + col * to_stride + row;
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, low01, low23)), d4, out);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, low01, low23)), d4, out + to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, high01, high23)), d4, out + 2 * to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, high01, high23)), d4, out + 3 * to_stride);
    }
    for (; col < cols; ++col) {
      for (int64_t i = 0; i < 4; ++i) to[col * to_stride + row + i] = in[i * from_stride + col];
    }
  }
#endif
  for (; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) to[col * to_stride + row] = from[row * from_stride + col];
  }
}

// The largest of the first `count` scores.
HWY_INLINE float row_max(const float* scores, int64_t count) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto max0 = lowest;
  auto max1 = lowest;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    max0 = hn::Max(max0, hn::LoadU(d, scores + i));
    max1 = hn::Max(max1, hn::LoadU(d, scores + i + lanes));
  }
  for (; i < count; i += lanes) {
    max0 = hn::Max(max0, hn::IfThenElse(lanes_before(i, count), hn::LoadU(d, scores + i), lowest));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
}

// scores -> 2^(scores - max) for the first `count` (0 up to `width`, whole vectors); returns their sum.
HWY_INLINE float row_exp2(float* scores, int64_t count, int64_t width, float max) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto top = hn::Set(d, max);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto share = exp2_of_negative(hn::Sub(hn::LoadU(d, scores + i), top));
    sum = hn::Add(sum, share);
    hn::StoreU(share, d, scores + i);
  }
  if (i < count) {
    const auto share =
        hn::IfThenElseZero(lanes_before(i, count), exp2_of_negative(hn::Sub(hn::LoadU(d, scores + i), top)));
    sum = hn::Add(sum, share);
    hn::StoreU(share, d, scores + i);
    i += lanes;
  }
  for (; i < width; i += lanes) hn::StoreU(hn::Zero(d), d, scores + i);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

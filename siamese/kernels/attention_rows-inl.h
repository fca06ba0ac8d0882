// The rows of attention, included once per SIMD target: a head's row with norm and RoPE into scratch and its gradient
// back out of it, the softmax of a row.
#include <cmath>
#include <limits>

#include "siamese/kernels/exp2-inl.h"
#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_
#undef SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_
#else
#define SIAMESE_KERNELS_ATTENTION_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

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

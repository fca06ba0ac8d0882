#include "siamese/kernels/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/rms_norm.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

void rms_norm_forward(const float* x, const float* gain, float eps, float* y, float* rstd, int64_t row_begin,
                      int64_t row_end, int64_t cols) {
  const Floats d;
  const Doubles dd;
  const FloatsOfDoubles df;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* row_x = x + row * cols;
    float* row_y = y + row * cols;
    const double squares = sum_in_double(0, cols, [&](auto sum, int64_t i, auto access) HWY_ATTR {
      prefetch(i, row_y);
      const auto value = hn::PromoteTo(dd, access.load(df, row_x + i));
      return hn::MulAdd(value, value, sum);
    });
    rstd[row] = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(cols) + static_cast<double>(eps)));
    const auto scale = hn::Set(d, rstd[row]);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(cols + i, row_x);
      const auto normed = hn::Mul(access.load(d, row_x + i), scale);
      access.store(hn::Mul(normed, load_or(access, d, gain, i, 1)), d, row_y + i);
    });
  }
}

// The gradient of the gain alone.
void add_gain_gradient(const float* dy, const float* x, const float* rstd, float* dgain, int64_t row_begin,
                       int64_t row_end, int64_t cols) {
  const Floats d;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* row_dy = dy + row * cols;
    const float* row_x = x + row * cols;
    const auto scale = hn::Set(d, rstd[row]);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      const auto normed = hn::Mul(access.load(d, row_x + i), scale);
      access.store(hn::MulAdd(access.load(d, row_dy + i), normed, access.load(d, dgain + i)), d, dgain + i);
    });
  }
}

void rms_norm_backward(const float* dy, const float* x, const float* gain, const float* rstd, float* dx, float* dgain,
                       int64_t row_begin, int64_t row_end, int64_t cols) {
  if (dx == nullptr) {
    if (dgain != nullptr) add_gain_gradient(dy, x, rstd, dgain, row_begin, row_end, cols);
    return;
  }
  const Floats d;
  const Doubles dd;
  const FloatsOfDoubles df;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* row_dy = dy + row * cols;
    const float* row_x = x + row * cols;
    float* row_dx = dx + row * cols;
    const double dot = sum_in_double(0, cols, [&](auto sum, int64_t i, auto access) HWY_ATTR {
      prefetch(i, row_dx);
      const auto g = hn::Mul(access.load(df, row_dy + i), load_or(access, df, gain, i, 1));
      return hn::MulAdd(hn::PromoteTo(dd, g), hn::PromoteTo(dd, access.load(df, row_x + i)), sum);
    });
    const auto scale = hn::Set(d, rstd[row]);
    // mean(g * n), kept beside the normalised row and not folded with rstd^2: that would underflow for large rows.
    const auto projection =
        hn::Set(d, static_cast<float>(dot * static_cast<double>(rstd[row]) / static_cast<double>(cols)));
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(cols + i, row_dy, row_x);
      const auto row_dy_i = access.load(d, row_dy + i);
      const auto normed = hn::Mul(access.load(d, row_x + i), scale);
      const auto g = hn::Mul(row_dy_i, load_or(access, d, gain, i, 1));
      if (dgain != nullptr) access.store(hn::MulAdd(row_dy_i, normed, access.load(d, dgain + i)), d, dgain + i);
      access.store(hn::Mul(scale, hn::NegMulAdd(normed, projection, g)), d, row_dx + i);
    });
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(rms_norm_forward);
HWY_EXPORT(rms_norm_backward);

void rms_norm_forward(const float* x, const float* gain, float eps, float* y, float* rstd, int64_t row_begin,
                      int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rms_norm_forward)(x, gain, eps, y, rstd, row_begin, row_end, cols);
}

void rms_norm_backward(const float* dy, const float* x, const float* gain, const float* rstd, float* dx, float* dgain,
                       int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(rms_norm_backward)(dy, x, gain, rstd, dx, dgain, row_begin, row_end, cols);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

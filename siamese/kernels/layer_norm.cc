#include "siamese/kernels/layer_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/layer_norm.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

void layer_norm_forward(const float* x, const float* gain, const float* bias, float eps, float* y, float* mean,
                        float* rstd, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  const Doubles dd;
  const FloatsOfDoubles df;
  const auto count = static_cast<double>(cols);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* row_x = x + row * cols;
    float* row_y = y + row * cols;
    const double total = sum_in_double(0, cols, [&](auto sum, int64_t i, auto access) HWY_ATTR {
      prefetch(i, row_y);
      return hn::Add(sum, hn::PromoteTo(dd, access.load(df, row_x + i)));
    });
    const auto wide_center = hn::Set(dd, total / count);
    const double squares = sum_in_double(0, cols, [&](auto sum, int64_t i, auto access) HWY_ATTR {
      const auto value = hn::PromoteTo(dd, access.load(df, row_x + i));
      const auto deviation = access.zero_outside(dd, hn::Sub(value, wide_center));
      return hn::MulAdd(deviation, deviation, sum);
    });
    mean[row] = static_cast<float>(total / count);
    rstd[row] = static_cast<float>(1 / std::sqrt(squares / count + static_cast<double>(eps)));
    const auto center = hn::Set(d, mean[row]);
    const auto scale = hn::Set(d, rstd[row]);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(cols + i, row_x);
      const auto normed = hn::Mul(hn::Sub(access.load(d, row_x + i), center), scale);
      const auto shift = load_or(access, d, bias, i, 0);
      access.store(hn::MulAdd(normed, load_or(access, d, gain, i, 1), shift), d, row_y + i);
    });
  }
}

// The gradients of gain and bias alone.
void add_parameter_gradients(const float* dy, const float* x, const float* mean, const float* rstd, float* dgain,
                             float* dbias, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* row_dy = dy + row * cols;
    const float* row_x = x + row * cols;
    const auto center = hn::Set(d, mean[row]);
    const auto scale = hn::Set(d, rstd[row]);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      const auto row_dy_i = access.load(d, row_dy + i);
      const auto normed = hn::Mul(hn::Sub(access.load(d, row_x + i), center), scale);
      if (dgain != nullptr) access.store(hn::MulAdd(row_dy_i, normed, access.load(d, dgain + i)), d, dgain + i);
      if (dbias != nullptr) access.store(hn::Add(row_dy_i, access.load(d, dbias + i)), d, dbias + i);
    });
  }
}

void layer_norm_backward(const float* dy, const float* x, const float* gain, const float* mean, const float* rstd,
                         float* dx, float* dgain, float* dbias, int64_t row_begin, int64_t row_end, int64_t cols) {
  if (dx == nullptr) return add_parameter_gradients(dy, x, mean, rstd, dgain, dbias, row_begin, row_end, cols);
  const Floats d;
  const Doubles dd;
  const FloatsOfDoubles df;
  const auto count = static_cast<double>(cols);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* row_dy = dy + row * cols;
    const float* row_x = x + row * cols;
    float* row_dx = dx + row * cols;
    const auto wide_center = hn::Set(dd, static_cast<double>(mean[row]));
    const TwoSums sums = two_sums_in_double(0, cols, [&](auto& total, auto& dot, int64_t i, auto access) HWY_ATTR {
      prefetch(i, row_dx);
      const auto g = hn::PromoteTo(dd, hn::Mul(access.load(df, row_dy + i), load_or(access, df, gain, i, 1)));
      total = hn::Add(total, g);
      // Outside a part g is 0, so the deviation there does not count.
      dot = hn::MulAdd(g, hn::Sub(hn::PromoteTo(dd, access.load(df, row_x + i)), wide_center), dot);
    });
    const auto center = hn::Set(d, mean[row]);
    const auto scale = hn::Set(d, rstd[row]);
    const auto mean_g = hn::Set(d, static_cast<float>(sums.first / count));
    // mean(g * n), kept beside the normalised row and not folded with rstd^2: that would underflow for large rows.
    const auto projection = hn::Set(d, static_cast<float>(sums.second * static_cast<double>(rstd[row]) / count));
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(cols + i, row_dy, row_x);
      const auto row_dy_i = access.load(d, row_dy + i);
      const auto normed = hn::Mul(hn::Sub(access.load(d, row_x + i), center), scale);
      const auto g = hn::Mul(row_dy_i, load_or(access, d, gain, i, 1));
      if (dgain != nullptr) access.store(hn::MulAdd(row_dy_i, normed, access.load(d, dgain + i)), d, dgain + i);
      if (dbias != nullptr) access.store(hn::Add(row_dy_i, access.load(d, dbias + i)), d, dbias + i);
      access.store(hn::Mul(scale, hn::NegMulAdd(normed, projection, hn::Sub(g, mean_g))), d, row_dx + i);
    });
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(layer_norm_forward);
HWY_EXPORT(layer_norm_backward);

void layer_norm_forward(const float* x, const float* gain, const float* bias, float eps, float* y, float* mean,
                        float* rstd, int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(layer_norm_forward)(x, gain, bias, eps, y, mean, rstd, row_begin, row_end, cols);
}

void layer_norm_backward(const float* dy, const float* x, const float* gain, const float* mean, const float* rstd,
                         float* dx, float* dgain, float* dbias, int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(layer_norm_backward)
  (dy, x, gain, mean, rstd, dx, dgain, dbias, row_begin, row_end, cols);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

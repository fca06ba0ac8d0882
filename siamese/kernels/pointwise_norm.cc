#include "siamese/kernels/pointwise_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/pointwise_norm.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/exp2-inl.h"
#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

using Vector = hn::Vec<Floats>;

struct PointwiseAt {
  Vector value;
  Vector slope;
};

// c[0] + c[1] z + c[2] z^2 + ...
template <size_t kCount>
HWY_INLINE Vector polynomial(const float (&c)[kCount], Vector z) {
  const Floats d;
  auto sum = hn::Set(d, c[kCount - 1]);
#pragma GCC unroll 8
  for (size_t i = 1; i < kCount; ++i) sum = hn::MulAdd(sum, z, hn::Set(d, c[kCount - 1 - i]));
  return sum;
}

// Near 0 an odd polynomial keeps every digit, farther out a difference from 1 does. Both are odd to the bit, NaN stays
// NaN, and far out they are 1 with a slope of 0. The polynomials were fitted here by reweighted least squares.

// tanh(u) = u P(u^2) for |u| < 0.65 (relative error 6e-9), else sign(u) (1 - e) / (1 + e), e = exp(-2 |u|). The slope,
// 4 e / (1 + e)^2, loses no digits anywhere.
struct Tanh {
  static HWY_INLINE PointwiseAt at(Vector u) {
    constexpr float kNear[] = {1.0F, -0.3333323F, 0.13330415F, -0.05366528F, 0.02041519F, -0.005468267F};
    const Floats d;
    const auto one = hn::Set(d, 1.0F);
    const auto size = hn::Abs(u);
    const auto e = exp_of_negative(hn::Mul(size, hn::Set(d, -2.0F)));
    const auto share = hn::Div(one, hn::Add(one, e));
    const auto far = hn::CopySign(hn::Mul(hn::Sub(one, e), share), u);
    const auto near = hn::Mul(u, polynomial(kNear, hn::Mul(u, u)));
    return {hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.65F)), near, far),
            hn::Mul(hn::Set(d, 4.0F), hn::Mul(hn::Mul(e, share), share))};
  }
};

// erf(u) = u P(u^2) for |u| < 1 (relative error 2e-9), else sign(u) (1 - exp(-Q(|u|))) (error 2e-9); at 4 it is 1 to
// half a digit. The slope is 2 / sqrt(pi) exp(-u^2).
struct Erf {
  static HWY_INLINE PointwiseAt at(Vector u) {
    constexpr float kNear[] = {1.1283791F,    -0.37612626F,    0.11283585F,  -0.026853813F,
                               0.0051883277F, -0.00080101931F, 0.0000785386F};
    constexpr float kFar[] = {-0.00031246908F, -1.1272023F,    -0.63796502F,  -0.1032562F,
                              0.021906473F,    -0.0029640049F, 0.00018797151F};
    const Floats d;
    const auto size = hn::Abs(u);
    const auto square = hn::Mul(u, u);
    const auto end = hn::Set(d, 4.0F);
    const auto bounded = hn::IfThenElse(hn::Gt(size, end), end, size);
    const auto far = hn::CopySign(hn::Sub(hn::Set(d, 1.0F), exp_of_negative(polynomial(kFar, bounded))), u);
    const auto near = hn::Mul(u, polynomial(kNear, square));
    return {hn::IfThenElse(hn::Lt(size, hn::Set(d, 1.0F)), near, far),
            hn::Mul(hn::Set(d, 1.1283791670955126F), exp_of_negative(hn::Neg(square)))};
  }
};

template <class Function>
void forward_of(const PointwiseNorm& norm, const float* x, float* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  const auto alpha = hn::Set(d, norm.alpha);
  const auto shift = hn::Set(d, norm.shift);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* const row_x = x + row * cols;
    float* const row_y = y + row * cols;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      const auto value = Function::at(hn::MulAdd(alpha, access.load(d, row_x + i), shift)).value;
      access.store(hn::MulAdd(value, load_or(access, d, norm.gain, i, 1), load_or(access, d, norm.bias, i, 0)), d,
                   row_y + i);
    });
  }
}

template <class Function>
void backward_of(const PointwiseNorm& norm, const float* dy, const float* x, float* dx, const PointwiseSums& sums,
                 int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  const auto alpha = hn::Set(d, norm.alpha);
  const auto shift = hn::Set(d, norm.shift);
  const auto add = [&](auto access, float* sum, Vector a, Vector b) HWY_ATTR {
    if (sum != nullptr) access.store(hn::MulAdd(a, b, access.load(d, sum)), d, sum);
  };
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* const row_dy = dy + row * cols;
    const float* const row_x = x + row * cols;
    float* const row_dx = row_or_null(dx, row * cols);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      const auto value_x = access.load(d, row_x + i);
      const auto value_dy = access.load(d, row_dy + i);
      const PointwiseAt made = Function::at(hn::MulAdd(alpha, value_x, shift));
      const auto g = hn::Mul(hn::Mul(value_dy, load_or(access, d, norm.gain, i, 1)), made.slope);
      if (row_dx != nullptr) access.store(hn::Mul(alpha, g), d, row_dx + i);
      add(access, row_or_null(sums.gain, i), value_dy, made.value);
      add(access, row_or_null(sums.bias, i), value_dy, hn::Set(d, 1.0F));
      add(access, row_or_null(sums.alpha, i), g, value_x);
      add(access, row_or_null(sums.shift, i), g, hn::Set(d, 1.0F));
    });
  }
}

void pointwise_norm_forward(const PointwiseNorm& norm, const float* x, float* y, int64_t row_begin, int64_t row_end,
                            int64_t cols) {
  const auto run = norm.function == PointwiseFunction::tanh ? &forward_of<Tanh> : &forward_of<Erf>;
  run(norm, x, y, row_begin, row_end, cols);
}

void pointwise_norm_backward(const PointwiseNorm& norm, const float* dy, const float* x, float* dx,
                             const PointwiseSums& sums, int64_t row_begin, int64_t row_end, int64_t cols) {
  const auto run = norm.function == PointwiseFunction::tanh ? &backward_of<Tanh> : &backward_of<Erf>;
  run(norm, dy, x, dx, sums, row_begin, row_end, cols);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(pointwise_norm_forward);
HWY_EXPORT(pointwise_norm_backward);

void pointwise_norm_forward(const PointwiseNorm& norm, const float* x, float* y, int64_t row_begin, int64_t row_end,
                            int64_t cols) {
  HWY_DYNAMIC_DISPATCH(pointwise_norm_forward)(norm, x, y, row_begin, row_end, cols);
}

void pointwise_norm_backward(const PointwiseNorm& norm, const float* dy, const float* x, float* dx,
                             const PointwiseSums& sums, int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(pointwise_norm_backward)(norm, dy, x, dx, sums, row_begin, row_end, cols);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

#include "siamese/kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/activation.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

using FloatVector = hn::Vec<Floats>;

// The value and the derivative of an activation of one number.
struct ValueAndSlope {
  FloatVector value;
  FloatVector slope;
};

// The sigmoid and one minus it, which as a difference would lose its digits.
struct Sigmoid {
  FloatVector value;
  FloatVector complement;
};

HWY_INLINE Sigmoid sigmoid(FloatVector x) {
  const Floats d;
  const auto one = hn::Set(d, 1.0F);
  // Highway's Exp wraps around past 88.7 instead of giving infinity; there the sigmoid is below 1e-38 anyway.
  const auto e = hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0F)));
  const auto value = hn::Div(one, hn::Add(one, e));
  return {value, hn::Mul(e, value)};
}

// silu and its slope: s + g s (1 - s)
HWY_INLINE ValueAndSlope silu(FloatVector g) {
  const Sigmoid s = sigmoid(g);
  const auto value = hn::Mul(g, s.value);
  return {value, hn::MulAdd(value, s.complement, s.value)};
}

// gelu_tanh(x) = x sigmoid(2 t), t = sqrt(2/pi) (x + 0.044715 x^3): the tanh form without a tanh.
HWY_INLINE ValueAndSlope gelu_tanh(FloatVector x) {
  const Floats d;
  const auto square = hn::Mul(x, x);
  const auto scale = hn::Set(d, 1.5957691216057308F);  // 2 sqrt(2 / pi)
  const auto inner = hn::Mul(hn::Mul(x, scale), hn::MulAdd(square, hn::Set(d, 0.044715F), hn::Set(d, 1.0F)));
  const auto inner_slope = hn::Mul(scale, hn::MulAdd(square, hn::Set(d, 3 * 0.044715F), hn::Set(d, 1.0F)));
  const Sigmoid s = sigmoid(inner);
  const auto value = hn::Mul(x, s.value);
  return {value, hn::MulAdd(hn::Mul(value, s.complement), inner_slope, s.value)};
}

// x Phi(x) and Phi(x) + x phi(x). erfc(z) = exp(-z^2) (c1 t + ... + c6 t^6), t = 1 / (1 + 0.39 z), z = |x| / sqrt(2):
// coefficients fitted here, by reweighted least squares on [0, 5]; the error of erfc is below 1e-8.
HWY_INLINE ValueAndSlope gelu(FloatVector x) {
  const Floats d;
  const auto one = hn::Set(d, 1.0F);
  const auto z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752F));
  const auto bell = hn::Exp(d, hn::Neg(hn::Mul(z, z)));
  const auto t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.39F), one));
  auto series = hn::Set(d, -0.2275382444F);
  series = hn::MulAdd(series, t, hn::Set(d, 0.886668967F));
  series = hn::MulAdd(series, t, hn::Set(d, -0.6354077833F));
  series = hn::MulAdd(series, t, hn::Set(d, 0.6495654841F));
  series = hn::MulAdd(series, t, hn::Set(d, 0.0913859639F));
  series = hn::MulAdd(series, t, hn::Set(d, 0.2353256111F));
  const auto tail = hn::Mul(hn::Mul(hn::Mul(series, t), bell), hn::Set(d, 0.5F));  // Phi(-|x|)
  const auto phi = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  const auto density = hn::Mul(bell, hn::Set(d, 0.3989422804014327F));  // 1 / sqrt(2 pi)
  return {hn::Mul(x, phi), hn::MulAdd(x, density, phi)};
}

template <class Function>
void unary_forward(const Function& function, const float* x, float* y, int64_t begin, int64_t end) {
  const Floats d;
  for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR {
    access.store(function(access.load(d, x + i)).value, d, y + i);
  });
}

template <class Function>
void unary_backward(const Function& function, const float* x, const float* dy, float* dx, int64_t begin, int64_t end) {
  const Floats d;
  for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR {
    const ValueAndSlope at = function(access.load(d, x + i));
    access.store(hn::Mul(access.load(d, dy + i), at.slope), d, dx + i);
  });
}

void swiglu_forward(const float* x, float* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* const up = x + 2 * row * cols;
    const float* const gate = up + cols;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      const auto g = access.load(d, gate + i);
      access.store(hn::Mul(access.load(d, up + i), hn::Mul(g, sigmoid(g).value)), d, y + row * cols + i);
    });
  }
}

void swiglu_backward(const float* x, const float* dy, float* dx, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t at = 2 * row * cols;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      const auto up = access.load(d, x + at + i);
      const ValueAndSlope gate = silu(access.load(d, x + at + cols + i));
      const auto grad = access.load(d, dy + row * cols + i);
      access.store(hn::Mul(grad, gate.value), d, dx + at + i);
      access.store(hn::Mul(hn::Mul(grad, up), gate.slope), d, dx + at + cols + i);
    });
  }
}

void activation_forward(Activation kind, const float* x, float* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  switch (kind) {
    case Activation::swiglu:
      return swiglu_forward(x, y, row_begin, row_end, cols);
    case Activation::gelu:
      return unary_forward([](FloatVector v) HWY_ATTR { return gelu(v); }, x, y, row_begin * cols, row_end * cols);
    case Activation::gelu_tanh:
      return unary_forward([](FloatVector v) HWY_ATTR { return gelu_tanh(v); }, x, y, row_begin * cols, row_end * cols);
  }
}

void activation_backward(Activation kind, const float* x, const float* dy, float* dx, int64_t row_begin,
                         int64_t row_end, int64_t cols) {
  const int64_t begin = row_begin * cols;
  const int64_t end = row_end * cols;
  switch (kind) {
    case Activation::swiglu:
      return swiglu_backward(x, dy, dx, row_begin, row_end, cols);
    case Activation::gelu:
      return unary_backward([](FloatVector v) HWY_ATTR { return gelu(v); }, x, dy, dx, begin, end);
    case Activation::gelu_tanh:
      return unary_backward([](FloatVector v) HWY_ATTR { return gelu_tanh(v); }, x, dy, dx, begin, end);
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(activation_forward);
HWY_EXPORT(activation_backward);

void activation_forward(Activation kind, const float* x, float* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(activation_forward)(kind, x, y, row_begin, row_end, cols);
}

void activation_backward(Activation kind, const float* x, const float* dy, float* dx, int64_t row_begin,
                         int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(activation_backward)(kind, x, dy, dx, row_begin, row_end, cols);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

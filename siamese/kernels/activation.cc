#include "siamese/kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/activation.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

using FloatVector = hn::Vec<Floats>;

constexpr float kLog2E = 1.44269504F;

// 2^(x c) for products from -124 to 127: half the work of Highway's Exp, which these kernels would wait for.
//   x c = n + f,  n an integer, |f| <= 1/2          2^(x c) = 2^n 2^f
//   2^f = 1 + c1 f + c2 f^2 + ... + c6 f^6          coefficients fitted here by reweighted least squares: relative
//                                                   error 2e-9
// n stands in the last bits of `shifted`, and goes from there into the exponent of 2^f.
HWY_INLINE FloatVector power_of_two(FloatVector x, float c) {
  const Floats d;
  const hn::RebindToSigned<Floats> bits;
  const auto round = hn::Set(d, 12582912.0F);  // 1.5 * 2^23: a sum with it has no digits after the point
  const auto one = hn::Set(d, 1.0F);
  const auto factor = hn::Set(d, c);
  const auto shifted = hn::MulAdd(x, factor, round);
  const auto f = hn::MulSub(x, factor, hn::Sub(shifted, round));
  auto series = hn::MulAdd(hn::Set(d, 0.000153533416F), f, hn::Set(d, 0.00133989006F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.00961843785F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.0555033237F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.240226477F));
  series = hn::MulAdd(series, f, hn::Set(d, 0.693147182F));
  series = hn::MulAdd(series, f, one);
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, series), hn::ShiftLeft<23>(hn::BitCast(bits, shifted))));
}

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
  // Past the bounds the sigmoid is 0 or 1 to 1e-37.
  const auto e = power_of_two(hn::Min(hn::Max(x, hn::Set(d, -88.0F)), hn::Set(d, 85.0F)), -kLog2E);
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

// gelu and its slope: x Phi(x) and Phi(x) + x phi(x), with Phi(-|x|) = erfc(z) / 2 and z = |x| / sqrt(2).
//   erfc(z) = exp(-z^2) (c1 t + c2 t^2 + ... + c6 t^6),  t = 1 / (1 + 0.39 z)
// The coefficients were fitted here by reweighted least squares on [0, 5]; the error of erfc is below 1e-8. The code
// has their halves.
HWY_INLINE ValueAndSlope gelu(FloatVector x) {
  const Floats d;
  const auto one = hn::Set(d, 1.0F);
  const auto bell = power_of_two(hn::Min(hn::Mul(x, x), hn::Set(d, 170.0F)), -0.5F * kLog2E);
  const auto t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.275771645F), one));
  auto series = hn::Set(d, -0.1137691222F);
  series = hn::MulAdd(series, t, hn::Set(d, 0.4433344835F));
  series = hn::MulAdd(series, t, hn::Set(d, -0.31770389165F));
  series = hn::MulAdd(series, t, hn::Set(d, 0.32478274205F));
  series = hn::MulAdd(series, t, hn::Set(d, 0.04569298195F));
  series = hn::MulAdd(series, t, hn::Set(d, 0.11766280555F));
  const auto tail = hn::Mul(hn::Mul(series, t), bell);  // Phi(-|x|)
  const auto phi = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  const auto density = hn::Mul(bell, hn::Set(d, 0.3989422804014327F));  // 1 / sqrt(2 pi)
  return {hn::Mul(x, phi), hn::MulAdd(x, density, phi)};
}

template <class Function, class T>
void unary_forward(const Function& function, const T* x, T* y, int64_t begin, int64_t end) {
  const Floats d;
  for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR {
    access.store(function(access.load(d, x + i)).value, d, y + i);
  });
}

template <class Function, class T>
void unary_backward(const Function& function, const T* x, const T* dy, T* dx, T* y, int64_t begin, int64_t end) {
  const Floats d;
  for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR {
    const ValueAndSlope at = function(access.load(d, x + i));
    access.store(hn::Mul(access.load(d, dy + i), at.slope), d, dx + i);
    if (y != nullptr) access.store(at.value, d, y + i);
  });
}

// How many rows ahead x is prefetched: its halves take turns, which the hardware does not follow, and memory needs the
// time of some hundred elements to answer.
int64_t rows_ahead(int64_t cols) { return 1 + 512 / cols; }

template <class T>
void swiglu_forward(const T* x, T* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  const int64_t ahead = 2 * cols * rows_ahead(cols);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const T* const up = x + 2 * row * cols;
    const T* const gate = up + cols;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(ahead + i, up, gate);
      const auto g = access.load(d, gate + i);
      access.store(hn::Mul(access.load(d, up + i), hn::Mul(g, sigmoid(g).value)), d, y + row * cols + i);
    });
  }
}

template <class T>
void swiglu_backward(const T* x, const T* dy, T* dx, T* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  const int64_t ahead = 2 * cols * rows_ahead(cols);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t at = 2 * row * cols;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(at + ahead + i, x, x + cols, dx, dx + cols);
      const auto up = access.load(d, x + at + i);
      const ValueAndSlope gate = silu(access.load(d, x + at + cols + i));
      const auto grad = access.load(d, dy + row * cols + i);
      access.store(hn::Mul(grad, gate.value), d, dx + at + i);
      access.store(hn::Mul(hn::Mul(grad, up), gate.slope), d, dx + at + cols + i);
      if (y != nullptr) access.store(hn::Mul(up, gate.value), d, y + row * cols + i);
    });
  }
}

template <class T>
void activation_forward_of(Activation kind, const T* x, T* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  switch (kind) {
    case Activation::swiglu:
      return swiglu_forward(x, y, row_begin, row_end, cols);
    case Activation::gelu:
      return unary_forward([](FloatVector v) HWY_ATTR { return gelu(v); }, x, y, row_begin * cols, row_end * cols);
    case Activation::gelu_tanh:
      return unary_forward([](FloatVector v) HWY_ATTR { return gelu_tanh(v); }, x, y, row_begin * cols, row_end * cols);
  }
}

template <class T>
void activation_backward_of(Activation kind, const T* x, const T* dy, T* dx, T* y, int64_t row_begin, int64_t row_end,
                            int64_t cols) {
  const int64_t begin = row_begin * cols;
  const int64_t end = row_end * cols;
  switch (kind) {
    case Activation::swiglu:
      return swiglu_backward(x, dy, dx, y, row_begin, row_end, cols);
    case Activation::gelu:
      return unary_backward([](FloatVector v) HWY_ATTR { return gelu(v); }, x, dy, dx, y, begin, end);
    case Activation::gelu_tanh:
      return unary_backward([](FloatVector v) HWY_ATTR { return gelu_tanh(v); }, x, dy, dx, y, begin, end);
  }
}

void activation_forward_of_floats(Activation kind, const float* x, float* y, int64_t row_begin, int64_t row_end,
                                  int64_t cols) {
  activation_forward_of(kind, x, y, row_begin, row_end, cols);
}
void activation_forward_of_bfloat16(Activation kind, const Bfloat16* x, Bfloat16* y, int64_t row_begin, int64_t row_end,
                                    int64_t cols) {
  activation_forward_of(kind, x, y, row_begin, row_end, cols);
}
void activation_backward_of_floats(Activation kind, const float* x, const float* dy, float* dx, float* y,
                                   int64_t row_begin, int64_t row_end, int64_t cols) {
  activation_backward_of(kind, x, dy, dx, y, row_begin, row_end, cols);
}
void activation_backward_of_bfloat16(Activation kind, const Bfloat16* x, const Bfloat16* dy, Bfloat16* dx, Bfloat16* y,
                                     int64_t row_begin, int64_t row_end, int64_t cols) {
  activation_backward_of(kind, x, dy, dx, y, row_begin, row_end, cols);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(activation_forward_of_floats);
HWY_EXPORT(activation_backward_of_floats);
HWY_EXPORT(activation_forward_of_bfloat16);
HWY_EXPORT(activation_backward_of_bfloat16);

void activation_forward(Activation kind, const float* x, float* y, int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(activation_forward_of_floats)(kind, x, y, row_begin, row_end, cols);
}

void activation_forward(Activation kind, const Bfloat16* x, Bfloat16* y, int64_t row_begin, int64_t row_end,
                        int64_t cols) {
  HWY_DYNAMIC_DISPATCH(activation_forward_of_bfloat16)(kind, x, y, row_begin, row_end, cols);
}

void activation_backward(Activation kind, const float* x, const float* dy, float* dx, float* y, int64_t row_begin,
                         int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(activation_backward_of_floats)(kind, x, dy, dx, y, row_begin, row_end, cols);
}

void activation_backward(Activation kind, const Bfloat16* x, const Bfloat16* dy, Bfloat16* dx, Bfloat16* y,
                         int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(activation_backward_of_bfloat16)(kind, x, dy, dx, y, row_begin, row_end, cols);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

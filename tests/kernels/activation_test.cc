#include "siamese/kernels/activation.h"

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/activation.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(Activations);

constexpr int64_t kActivationRows = 3;

// A few roundings of numbers of this size.
std::vector<double> bounds(const std::vector<double>& expected, const std::vector<double>& scale) {
  std::vector<double> bound;
  for (size_t i = 0; i < expected.size(); ++i) bound.push_back(8 * kUlp * (std::abs(expected[i]) + scale[i]));
  return bound;
}

// Ordinary numbers, and now and then one far out, where exp overflows or vanishes.
std::vector<float> inputs(int64_t size, const std::string& name) {
  auto values = random_floats(size, name, 0, 3);
  for (size_t i = 0; i < values.size(); i += 7) values[i] *= 40;
  return values;
}

TEST_P(Activations, SwigluEqualsTheReference) {
  for (const int64_t cols : kWidths) {
    const auto x = inputs(kActivationRows * 2 * cols, "x");
    const auto dy = random_floats(kActivationRows * cols, "dy");
    std::vector<float> y(static_cast<size_t>(kActivationRows * cols)), dx(x.size());
    activation_forward(Activation::swiglu, x.data(), y.data(), 0, 1, cols);
    activation_forward(Activation::swiglu, x.data(), y.data(), 1, kActivationRows, cols);
    activation_backward(Activation::swiglu, x.data(), dy.data(), dx.data(), nullptr, 0, kActivationRows, cols);
    std::vector<double> want_y, want_dx(x.size()), y_scale, dx_scale(x.size());
    for (int64_t row = 0; row < kActivationRows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        const auto up_at = static_cast<size_t>(2 * row * cols + col);
        const auto gate_at = up_at + static_cast<size_t>(cols);
        const double up = x[up_at], gate = x[gate_at], d = dy[static_cast<size_t>(row * cols + col)];
        want_y.push_back(up * reference::silu(gate));
        y_scale.push_back(std::abs(up) * std::min(1.0, std::abs(gate)));
        want_dx[up_at] = d * reference::silu(gate);
        want_dx[gate_at] = d * up * reference::silu_slope(gate);
        dx_scale[up_at] = std::abs(d);
        dx_scale[gate_at] = std::abs(d * up);
      }
    }
    expect_within(y, want_y, bounds(want_y, y_scale), "y " + std::to_string(cols));
    expect_within(dx, want_dx, bounds(want_dx, dx_scale), "dx " + std::to_string(cols));
  }
}

TEST_P(Activations, GeluEqualsTheReference) {
  struct Case {
    Activation kind;
    double (*value)(double);
    double (*slope)(double);
  };
  for (const auto& test : {Case{Activation::gelu, reference::gelu, reference::gelu_slope},
                           Case{Activation::gelu_tanh, reference::gelu_tanh, reference::gelu_tanh_slope}}) {
    for (const int64_t cols : kWidths) {
      const auto x = inputs(kActivationRows * cols, "x");
      const auto dy = random_floats(kActivationRows * cols, "dy");
      std::vector<float> y(x.size()), dx(x.size()), in_place = x;
      activation_forward(test.kind, x.data(), y.data(), 0, 2, cols);
      activation_forward(test.kind, x.data(), y.data(), 2, kActivationRows, cols);
      activation_backward(test.kind, x.data(), dy.data(), dx.data(), nullptr, 0, kActivationRows, cols);
      activation_backward(test.kind, in_place.data(), dy.data(), in_place.data(), nullptr, 0, kActivationRows, cols);
      std::vector<double> want_y, want_dx, y_scale, dx_scale;
      for (size_t i = 0; i < x.size(); ++i) {
        want_y.push_back(test.value(x[i]));
        want_dx.push_back(dy[i] * test.slope(x[i]));
        y_scale.push_back(std::min(1.0, std::abs(static_cast<double>(x[i]))));
        dx_scale.push_back(std::abs(static_cast<double>(dy[i])));
      }
      expect_within(y, want_y, bounds(want_y, y_scale), "y " + std::to_string(cols));
      EXPECT_TRUE(same_bits(dx, in_place));
      expect_within(dx, want_dx, bounds(want_dx, dx_scale), "dx " + std::to_string(cols));
    }
  }
}

// Backward can give the value once more, in the place of the gradient it came with.
TEST_P(Activations, BackwardGivesTheValueAgain) {
  for (const Activation kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    for (const int64_t cols : kWidths) {
      const auto x = inputs(kActivationRows * cols * (kind == Activation::swiglu ? 2 : 1), "x");
      const auto dy = random_floats(kActivationRows * cols, "dy");
      std::vector<float> y(dy.size()), dx(x.size()), dx_with_value(x.size()), value = dy;
      activation_forward(kind, x.data(), y.data(), 0, kActivationRows, cols);
      activation_backward(kind, x.data(), dy.data(), dx.data(), nullptr, 0, kActivationRows, cols);
      activation_backward(kind, x.data(), value.data(), dx_with_value.data(), value.data(), 0, kActivationRows, cols);
      EXPECT_EQ(value, y) << cols;
      EXPECT_EQ(dx_with_value, dx) << cols;
    }
  }
}

}  // namespace
}  // namespace siamese::kernels

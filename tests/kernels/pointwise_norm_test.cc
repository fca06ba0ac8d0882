#include "siamese/kernels/pointwise_norm.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/pointwise_norm.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(PointwiseNorms);

constexpr float kAlpha = 0.5F;
constexpr float kShift = -0.25F;

// One problem, its float result and its double result.
struct PointwiseCase {
  PointwiseCase(PointwiseFunction f, int64_t row_count, int64_t col_count, bool affine = true)
      : rows(row_count),
        cols(col_count),
        x(random_floats(rows * cols, "x", 0.2, 2)),
        dy(random_floats(rows * cols, "dy")),
        gain(random_floats(cols, "gain", 1)),
        bias(random_floats(cols, "bias")),
        y(x.size(), kUntouched),
        dx(x.size(), kUntouched),
        sums(4, random_floats(cols, "sums")) {
    norm = {f, kAlpha, kShift, affine ? gain.data() : nullptr, affine ? bias.data() : nullptr};
  }
  PointwiseCase(const PointwiseCase&) = delete;

  void forward(int64_t begin, int64_t end) { pointwise_norm_forward(norm, x.data(), y.data(), begin, end, cols); }
  void backward(int64_t begin, int64_t end) {
    const PointwiseSums all{sums[0].data(), sums[1].data(), sums[2].data(), sums[3].data()};
    pointwise_norm_backward(norm, dy.data(), x.data(), dx.data(), all, begin, end, cols);
  }

  int64_t rows, cols;
  std::vector<float> x, dy, gain, bias, y, dx;
  std::vector<std::vector<float>> sums;  // of gain, bias, alpha, shift
  PointwiseNorm norm;
};

void expect_equals_reference(PointwiseCase& c) {
  const std::vector<double> x = widen(c.x), dy = widen(c.dy), gain = widen(c.gain), bias = widen(c.bias);
  const double* const wide_gain = c.norm.gain == nullptr ? nullptr : gain.data();
  const double* const wide_bias = c.norm.bias == nullptr ? nullptr : bias.data();
  std::vector<double> y(x.size()), dx(x.size());
  std::vector<std::vector<double>> sums(4, widen(c.sums[0]));
  const PointwiseFunction f = c.norm.function;
  reference::pointwise_norm_forward(f, kAlpha, kShift, wide_gain, wide_bias, x.data(), y.data(), c.rows, c.cols);
  reference::pointwise_norm_backward(f, kAlpha, kShift, wide_gain, dy.data(), x.data(), dx.data(), sums[0].data(),
                                     sums[1].data(), sums[2].data(), sums[3].data(), c.rows, c.cols);
  c.forward(0, c.rows);
  c.backward(0, c.rows);
  // f(u): a few roundings of its own and that of u, which moves it by slope |u|; then gain and bias. The slope of erf
  // turns a rounding of u^2 into one of its relative size.
  std::vector<double> y_bound(x.size()), dx_bound(x.size());
  std::vector<std::vector<double>> magnitude(4, std::vector<double>(static_cast<size_t>(c.cols)));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t col = i % static_cast<size_t>(c.cols);
    const double u = kAlpha * x[i] + kShift, g = wide_gain ? gain[col] : 1, b = wide_bias ? bias[col] : 0;
    const double value = reference::pointwise_value(f, u), slope = reference::pointwise_slope(f, u);
    const double u_off = std::abs(kAlpha * x[i]) + std::abs(kShift) + std::abs(u);
    y_bound[i] = kUlp * (std::abs(g) * (6 * std::abs(value) + slope * u_off) + 2 * std::abs(b));
    dx_bound[i] = kUlp * std::abs(kAlpha * dy[i] * g * slope) * (12 + 4 * std::abs(u) * u_off);
    magnitude[0][col] += std::abs(dy[i]) * (7 * std::abs(value) + slope * u_off);
    magnitude[1][col] += std::abs(dy[i]);
    magnitude[2][col] += dx_bound[i] / kUlp * std::abs(x[i] / kAlpha);
    magnitude[3][col] += dx_bound[i] / kUlp / kAlpha;
  }
  const std::string what = std::string(f == PointwiseFunction::tanh ? "tanh " : "erf ") + shape_text(c.rows, c.cols);
  expect_within(c.y, y, y_bound, "y " + what);
  expect_within(c.dx, dx, dx_bound, "dx " + what);
  const std::vector<double> before = widen(random_floats(c.cols, "sums"));
  for (size_t k = 0; k < 4; ++k) {
    std::vector<double> bound;
    for (size_t col = 0; col < magnitude[k].size(); ++col) {
      const double start = std::abs(before[col]);
      bound.push_back(static_cast<double>(c.rows + 2) * kUlp * (start + magnitude[k][col]));
    }
    expect_within(c.sums[k], sums[k], bound, "sum " + std::to_string(k) + " " + what);
  }
}

constexpr PointwiseFunction kFunctions[] = {PointwiseFunction::tanh, PointwiseFunction::erf};

TEST_P(PointwiseNorms, EqualTheReference) {
  for (const PointwiseFunction f : kFunctions) {
    for (const int64_t cols : kWidths) {
      for (const bool affine : {true, false}) {
        PointwiseCase c(f, 5, cols, affine);
        expect_equals_reference(c);
      }
    }
  }
}

// The functions themselves over their whole range: a few roundings, relative near 0 as well, exactly odd.
TEST_P(PointwiseNorms, KeepTheirDigitsEverywhere) {
  std::vector<float> x;
  for (int i = 0; i <= 40000; ++i) x.push_back(static_cast<float>(i) * 2.5e-4F);  // past the last digit of both
  for (const float small : {1e-30F, 1e-8F, 1e-4F, 0.6499999F, 0.65F, 0.99999F, 1.0F}) x.push_back(small);
  const auto count = static_cast<int64_t>(x.size());
  for (const PointwiseFunction f : kFunctions) {
    std::vector<float> y(x.size()), mirrored(x.size()), minus = x, dx(x.size());
    for (float& value : minus) value = -value;
    const std::vector<float> ones(x.size(), 1.0F);
    pointwise_norm_forward({f, 1, 0}, x.data(), y.data(), 0, 1, count);
    pointwise_norm_forward({f, 1, 0}, minus.data(), mirrored.data(), 0, 1, count);
    pointwise_norm_backward({f, 1, 0}, ones.data(), x.data(), dx.data(), {}, 0, 1, count);
    std::vector<double> want, bound, slope, slope_bound;
    for (const float value : x) {
      want.push_back(reference::pointwise_value(f, value));
      bound.push_back(4 * kUlp * want.back());
      slope.push_back(reference::pointwise_slope(f, value));
      slope_bound.push_back(slope.back() * kUlp * (8 + 2 * static_cast<double>(value) * value) + 2e-38);
    }
    expect_within(y, want, bound, "value");
    expect_within(dx, slope, slope_bound, "slope");
    for (float& value : mirrored) value = -value;
    EXPECT_EQ(y, mirrored);
  }
}

TEST_P(PointwiseNorms, StayFiniteFarOutAndKeepNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {1e4F, -1e4F, 1e19F, -1e30F, 3e38F, inf, -inf, nan, 0.5F};
  const std::vector<float> dy(x.size(), 1.0F);
  const auto count = static_cast<int64_t>(x.size());
  for (const PointwiseFunction f : kFunctions) {
    std::vector<float> y(x.size()), dx(x.size());
    pointwise_norm_forward({f, 0.5F, 0}, x.data(), y.data(), 0, 1, count);
    pointwise_norm_backward({f, 0.5F, 0}, dy.data(), x.data(), dx.data(), {}, 0, 1, count);
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(y[i], std::copysign(1.0F, x[i])) << x[i];
      EXPECT_EQ(dx[i], 0) << x[i];
    }
    EXPECT_TRUE(std::isnan(y[7]) && std::isnan(dx[7]));
    EXPECT_TRUE(std::isfinite(y[8]) && dx[8] > 0);
  }
}

TEST_P(PointwiseNorms, RowByRowGivesTheSameBitsAndLeavesOthersAlone) {
  for (const PointwiseFunction f : kFunctions) {
    for (const int64_t cols : {1, 31, 32, 33, 257}) {
      PointwiseCase whole(f, 4, cols), split(f, 4, cols);
      whole.forward(0, 4);
      whole.backward(0, 4);
      split.forward(1, 2);
      split.backward(1, 2);
      for (int64_t i = 0; i < 4 * cols; ++i) {
        EXPECT_EQ(split.y[static_cast<size_t>(i)] != kUntouched, i / cols == 1);
        EXPECT_EQ(split.dx[static_cast<size_t>(i)] != kUntouched, i / cols == 1);
      }
      split.sums.assign(4, random_floats(cols, "sums"));
      for (int64_t row = 0; row < 4; ++row) {
        split.forward(row, row + 1);
        split.backward(row, row + 1);
      }
      EXPECT_TRUE(same_bits(whole.y, split.y) && same_bits(whole.dx, split.dx));
      for (size_t k = 0; k < 4; ++k) EXPECT_TRUE(same_bits(whole.sums[k], split.sums[k])) << k;
    }
  }
}

TEST_P(PointwiseNorms, WhatIsNullIsNotWanted) {
  PointwiseCase all(PointwiseFunction::erf, 3, 33), some(PointwiseFunction::erf, 3, 33);
  all.backward(0, 3);
  pointwise_norm_backward(some.norm, some.dy.data(), some.x.data(), nullptr, {.alpha = some.sums[2].data()}, 0, 3, 33);
  EXPECT_TRUE(same_bits(all.sums[2], some.sums[2]));
  EXPECT_EQ(some.dx[0], kUntouched);
  EXPECT_TRUE(same_bits(some.sums[0], random_floats(33, "sums")));
}

}  // namespace
}  // namespace siamese::kernels

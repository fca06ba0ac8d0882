#include "siamese/ops/pointwise_norm.h"

#include <cmath>
#include <numbers>

#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/kernels/simd.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace {

using testing::gradients;
using testing::leaf;
using testing::randn;

constexpr PointwiseFunction kBoth[] = {PointwiseFunction::tanh, PointwiseFunction::erf};

// x, alpha, shift, gain, bias; those of `without` are absent.
struct PointwiseInputs {
  explicit PointwiseInputs(int64_t rows, int64_t cols, at::ScalarType type, bool affine = true) {
    all = {leaf((randn({rows, cols}, 1) * 2 + 0.5).to(type)), leaf(at::full({1}, 0.6, type)),
           leaf(at::full({1}, -0.2, type))};
    if (!affine) return;
    all.push_back(leaf(randn({cols}, 2).to(type)));
    all.push_back(leaf(randn({cols}, 3).to(type)));
  }
  at::Tensor operator[](size_t i) const { return i < all.size() ? all[i] : at::Tensor(); }
  std::vector<at::Tensor> all;
};

// Element by element with the functions of the C library, and the derivatives of the formula.
TEST(PointwiseNorm, EqualsItsFormulaByHandInDouble) {
  const int64_t rows = 3, cols = 7;
  for (const PointwiseFunction f : kBoth) {
    const PointwiseInputs in(rows, cols, at::kDouble);
    const at::Tensor y = pointwise_norm(f, in[0], in[1], in[2], in[3], in[4]);
    const at::Tensor dy = randn(y.sizes(), 4242);  // what testing::gradients sends back
    const double a = in[1].item<double>(), s = in[2].item<double>();
    at::Tensor want = at::zeros({rows, cols}, at::kDouble), dx = at::zeros({rows, cols}, at::kDouble);
    at::Tensor dgain = at::zeros({cols}, at::kDouble), dbias = at::zeros({cols}, at::kDouble);
    double da = 0, ds = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        const double x = in[0][row][col].item<double>(), g = in[3][col].item<double>(), b = in[4][col].item<double>();
        const double d = dy[row][col].item<double>(), u = a * x + s;
        const bool tanh = f == PointwiseFunction::tanh;
        const double value = tanh ? std::tanh(u) : std::erf(u);
        const double slope = tanh ? 1 - value * value : 2 / std::sqrt(std::numbers::pi) * std::exp(-u * u);
        want[row][col] = g * value + b;
        dx[row][col] = d * g * slope * a;
        da += d * g * slope * x;
        ds += d * g * slope;
        dgain[col] += d * value;
        dbias[col] += d;
      }
    }
    testing::expect_relative(y, want, 1e-14, "value");
    const auto got = gradients(y, in.all);
    const std::vector<at::Tensor> wanted = {dx, at::full({1}, da, at::kDouble), at::full({1}, ds, at::kDouble), dgain,
                                            dbias};
    for (size_t i = 0; i < wanted.size(); ++i) {
      testing::expect_relative(got[i], wanted[i], 1e-13, "gradient " + std::to_string(i));
    }
  }
}

TEST(PointwiseNorm, FusedEqualsPlainAtEverySimdLevel) {
  const ModeGuard fused(Mode::fused);
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    for (const PointwiseFunction f : kBoth) {
      for (const int64_t cols : {1, 31, 32, 33, 257}) {
        for (const int64_t rows : {1, 3, 130}) {
          for (const bool affine : {true, false}) {
            const PointwiseInputs exact(rows, cols, at::kDouble, affine), single(rows, cols, at::kFloat, affine);
            const at::Tensor y = pointwise_norm(f, single[0], single[1], single[2], single[3], single[4]);
            const at::Tensor want = plain::pointwise_norm(f, exact[0], exact[1], exact[2], exact[3], exact[4]);
            const std::string what = std::string(f == PointwiseFunction::tanh ? "dyt " : "derf ") +
                                     kernels::simd_name(target) + " " + std::to_string(rows) + " x " +
                                     std::to_string(cols);
            testing::expect_relative(y, want, 1e-6, what);
            const auto got = gradients(y, single.all);
            const auto wanted = gradients(want, exact.all);
            for (size_t i = 0; i < got.size(); ++i) {
              // alpha and shift: sums over all elements, whose terms cancel; the others are of so many rows.
              const double terms = i == 1 || i == 2 ? static_cast<double>(rows) : cols == 1 ? 2 : 0;
              testing::expect_relative(got[i], wanted[i], 3e-6, what + " gradient " + std::to_string(i), terms);
            }
          }
        }
      }
    }
  }
  kernels::force_simd_target(0);
}

TEST(PointwiseNorm, IsOddAndHasItsSlopeAtZero) {
  const at::Tensor x = randn({4, 33}, 5, at::kFloat);
  const at::Tensor alpha = at::full({1}, 0.5, at::kFloat), gain = randn({33}, 6, at::kFloat);
  for (const PointwiseFunction f : kBoth) {
    testing::expect_same_bits(pointwise_norm(f, -x, alpha, {}, gain, {}), -pointwise_norm(f, x, alpha, {}, gain, {}),
                              "odd");
    const at::Tensor zero = leaf(at::zeros({1, 33}, at::kFloat));
    const at::Tensor y = pointwise_norm(f, zero, alpha, {}, gain, {});
    EXPECT_EQ(testing::largest(y), 0);
    const at::Tensor slope = torch::autograd::grad({y.sum()}, {zero})[0][0];
    const double at_zero = f == PointwiseFunction::tanh ? 0.5 : 2 * 0.5 / std::sqrt(std::numbers::pi);
    testing::expect_relative(slope, at_zero * gain.to(at::kDouble), 3e-7, "slope at 0");
  }
}

TEST(PointwiseNorm, StaysFiniteFarOutInFloatAndBfloat16) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const PointwiseFunction f : kBoth) {
      const at::Tensor x = leaf((randn({3, 65}, 7) * 1e4).to(type));
      const std::vector<at::Tensor> in = {x, leaf(at::full({1}, 0.5, type)), leaf(at::zeros({1}, type)),
                                          leaf(at::ones({65}, type)), leaf(at::zeros({65}, type))};
      const at::Tensor y = pointwise_norm(f, in[0], in[1], in[2], in[3], in[4]);
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_LE(testing::largest(y), 1);
      for (const auto& gradient : gradients(y, in)) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
    }
  }
}

TEST(PointwiseNorm, SameBitsAtAnyThreadCount) {
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    const PointwiseInputs in(777, 65, at::kFloat);
    const at::Tensor y = pointwise_norm(PointwiseFunction::erf, in[0], in[1], in[2], in[3], in[4]);
    results.push_back(gradients(y, in.all));
    results.back().push_back(y);
  }
  at::set_num_threads(before);
  for (size_t run = 1; run < results.size(); ++run) {
    for (size_t i = 0; i < results[0].size(); ++i) testing::expect_same_bits(results[run][i], results[0][i], "threads");
  }
}

}  // namespace
}  // namespace siamese::ops

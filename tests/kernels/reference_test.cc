// The reference itself: its backward is the derivative of its forward (central differences), AdamW does what its
// closed forms say.
#include <functional>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/adamw.h"
#include "siamese/kernels/reference/attention.h"
#include "siamese/kernels/reference/layer_norm.h"
#include "siamese/kernels/reference/reduce.h"
#include "siamese/kernels/reference/rms_norm.h"

namespace siamese::kernels {
namespace {

constexpr int64_t kReferenceRows = 3;
constexpr int64_t kCols = 7;
constexpr double kReferenceEps = 1e-3;
// Central differences in double: error h^2 f'''/6 + rounding 1e-16 / h, so about 1e-9 at h = 1e-5 for values near 1.
constexpr double kStep = 1e-5;
constexpr double kBound = 1e-8;

// d loss / d values[i] for each i, where `loss` reads `values`.
std::vector<double> numeric_gradient(std::vector<double>& values, const std::function<double()>& loss) {
  std::vector<double> gradient;
  for (double& value : values) {
    const double saved = value;
    value = saved + kStep;
    const double above = loss();
    value = saved - kStep;
    const double below = loss();
    value = saved;
    gradient.push_back((above - below) / (2 * kStep));
  }
  return gradient;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], kBound) << "at " << i;
}

struct ReferenceCase {
  std::vector<double> x = widen(random_floats(kReferenceRows * kCols, "x", 0.5));
  std::vector<double> dy = widen(random_floats(kReferenceRows * kCols, "dy"));
  std::vector<double> gain = widen(random_floats(kCols, "gain", 1));
  std::vector<double> bias = widen(random_floats(kCols, "bias"));
  std::vector<double> y = std::vector<double>(kReferenceRows * kCols);
  std::vector<double> dx = std::vector<double>(kReferenceRows * kCols);
  std::vector<double> mean = std::vector<double>(kReferenceRows);
  std::vector<double> rstd = std::vector<double>(kReferenceRows);
  std::vector<double> dgain = std::vector<double>(kCols);
  std::vector<double> dbias = std::vector<double>(kCols);

  double dot() const {
    double total = 0;
    for (size_t i = 0; i < y.size(); ++i) total += y[i] * dy[i];
    return total;
  }
};

TEST(Reference, RmsNormBackwardIsTheDerivative) {
  for (bool with_gain : {true, false}) {
    ReferenceCase c;
    const double* gain = with_gain ? c.gain.data() : nullptr;
    const auto loss = [&] {
      reference::rms_norm_forward(c.x.data(), gain, kReferenceEps, c.y.data(), c.rstd.data(), kReferenceRows, kCols);
      return c.dot();
    };
    loss();
    reference::rms_norm_backward(c.dy.data(), c.x.data(), gain, c.rstd.data(), c.dx.data(), c.dgain.data(),
                                 kReferenceRows, kCols);
    expect_near(c.dx, numeric_gradient(c.x, loss));
    if (with_gain) expect_near(c.dgain, numeric_gradient(c.gain, loss));
  }
}

TEST(Reference, LayerNormBackwardIsTheDerivative) {
  for (bool with_gain : {true, false}) {
    ReferenceCase c;
    const double* gain = with_gain ? c.gain.data() : nullptr;
    const auto loss = [&] {
      reference::layer_norm_forward(c.x.data(), gain, c.bias.data(), kReferenceEps, c.y.data(), c.mean.data(),
                                    c.rstd.data(), kReferenceRows, kCols);
      return c.dot();
    };
    loss();
    reference::layer_norm_backward(c.dy.data(), c.x.data(), gain, c.mean.data(), c.rstd.data(), c.dx.data(),
                                   c.dgain.data(), c.dbias.data(), kReferenceRows, kCols);
    expect_near(c.dx, numeric_gradient(c.x, loss));
    if (with_gain) expect_near(c.dgain, numeric_gradient(c.gain, loss));
    expect_near(c.dbias, numeric_gradient(c.bias, loss));
  }
}

TEST(Reference, AttentionBackwardIsTheDerivative) {
  for (const bool causal : {true, false}) {
    const AttentionShape shape{2, 3, 4, 2, 4, causal, 1e-3F};
    std::vector<double> qkv = widen(random_floats(2 * 3 * 8 * 4, "qkv", 0.2)), gains = widen(random_floats(12, "g", 1));
    const std::vector<double> d_out = widen(random_floats(2 * 3 * 16, "d_out"));
    std::vector<double> cos, sin, out(d_out.size()), lse(2 * 4 * 3), d_qkv(qkv.size()), d_gains(12);
    for (const double angle : {0.3, -1.0, 2.0, 0.1, 4.0, -2.5}) {
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    const reference::AttentionInputs inputs{qkv.data(), cos.data(), sin.data(), {gains.data(), &gains[4], &gains[8]}};
    const auto loss = [&] {
      reference::attention_forward(shape, inputs, out.data(), lse.data());
      return reference::row_product(out.data(), d_out.data(), static_cast<int64_t>(out.size()));
    };
    loss();
    reference::attention_backward(shape, inputs, out.data(), lse.data(), d_out.data(), d_qkv.data(), d_gains.data());
    expect_near(d_qkv, numeric_gradient(qkv, loss));
    expect_near(d_gains, numeric_gradient(gains, loss));
  }
}

TEST(Reference, NormsHaveTheMomentsTheyPromise) {
  ReferenceCase c;
  reference::rms_norm_forward(c.x.data(), nullptr, 0, c.y.data(), c.rstd.data(), kReferenceRows, kCols);
  for (int64_t row = 0; row < kReferenceRows; ++row) {
    EXPECT_NEAR(reference::sum_squares(&c.y[row * kCols], kCols) / kCols, 1, 1e-14);
  }
  reference::layer_norm_forward(c.x.data(), nullptr, nullptr, 0, c.y.data(), c.mean.data(), c.rstd.data(),
                                kReferenceRows, kCols);
  for (int64_t row = 0; row < kReferenceRows; ++row) {
    EXPECT_NEAR(reference::sum(&c.y[row * kCols], kCols), 0, 1e-13);
    EXPECT_NEAR(reference::sum_squares(&c.y[row * kCols], kCols) / kCols, 1, 1e-13);
  }
}

// With unbiased moments the first step is lr * g / (|g| + eps), after the decay of p, whatever the betas.
TEST(Reference, FirstAdamWStepIsTheSignOfTheGradient) {
  const AdamWStep step{.lr = 0.1,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .eps = 1e-8,
                       .weight_decay = 0.5,
                       .bias1 = 1 - 0.9,
                       .bias2 = 1 - 0.95,
                       .clip_scale = 0.25};
  const std::vector<double> g = {4, -0.04, 0};
  std::vector<double> p = {1, 2, 3}, m(3), v(3);
  reference::adamw_update(step, g.data(), p.data(), m.data(), v.data(), 3);
  EXPECT_NEAR(p[0], 1 * 0.95 - 0.1 * 1 / (1 + 1e-8), 1e-14);
  EXPECT_NEAR(p[1], 2 * 0.95 + 0.1 * 0.01 / (0.01 + 1e-8), 1e-14);
  EXPECT_NEAR(p[2], 3 * 0.95, 1e-14);
  EXPECT_NEAR(m[0], 0.1 * 1, 1e-15);
  EXPECT_NEAR(v[0], 0.05 * 1, 1e-15);
}

// A constant gradient: m and v are geometric sums, and with their corrections every step moves by lr.
TEST(Reference, AdamWWithAConstantGradientMovesByTheLearningRate) {
  const double g = -3;
  double p = 0, m = 0, v = 0;
  for (int t = 1; t <= 50; ++t) {
    AdamWStep step{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 0};
    step.bias1 = 1 - std::pow(step.beta1, t);
    step.bias2 = 1 - std::pow(step.beta2, t);
    reference::adamw_update(step, &g, &p, &m, &v, 1);
    EXPECT_NEAR(p, 0.01 * t, 1e-12);
    EXPECT_NEAR(m, g * step.bias1, 1e-12);
    EXPECT_NEAR(v, g * g * step.bias2, 1e-12);
  }
}

}  // namespace
}  // namespace siamese::kernels

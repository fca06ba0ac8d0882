#include "siamese/models/diffusion.h"

#include <cmath>

#include "tests/support/tensors.h"

#include "siamese/base/check.h"

namespace siamese::models {
namespace diffusion_test {

using testing::randn;

// The schedule and both losses of one sample, from the equations in plain double loops.
struct Written {
  explicit Written(int64_t count = 1000) {
    double product = 1;
    for (int64_t t = 0; t < count; ++t) {
      const double scale = 1000.0 / static_cast<double>(count);
      beta.push_back(scale * (1e-4 + (2e-2 - 1e-4) * static_cast<double>(t) / static_cast<double>(count - 1)));
      product *= 1 - beta.back();
      abar.push_back(product);
    }
  }
  double before(size_t t) const { return t == 0 ? 1 : abar[t - 1]; }
  // Bayes: x_{t-1} has the precision 1 / (1 - abar_{t-1}) around sqrt(abar_{t-1}) x_0, and x_t tells of it with noise
  // of variance beta_t.
  double posterior_variance(size_t t) const { return 1 / ((1 - beta[t]) / beta[t] + 1 / (1 - before(t))); }
  double posterior_mean(size_t t, double x0, double xt) const {
    return posterior_variance(t) *
           (std::sqrt(1 - beta[t]) * xt / beta[t] + std::sqrt(before(t)) * x0 / (1 - before(t)));
  }
  double log_variance(size_t t, double v) const {
    const double f = (v + 1) / 2;
    return f * std::log(beta[t]) + (1 - f) * std::log(posterior_variance(t == 0 ? 1 : t));
  }
  static double cdf(double z) { return 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * std::pow(z, 3)))); }
  // In bits, of one element.
  double vlb(size_t t, double eps, double v, double x0, double xt) const {
    const double guess = (xt - std::sqrt(1 - abar[t]) * eps) / std::sqrt(abar[t]);
    const double log_p = log_variance(t, v);
    if (t == 0) {
      const double std = std::exp(log_p / 2);
      const double top = cdf((x0 - guess + 1.0 / 255) / std);
      const double bottom = cdf((x0 - guess - 1.0 / 255) / std);
      const double probability = x0 < -0.999 ? top : x0 > 0.999 ? 1 - bottom : top - bottom;
      return -std::log(std::max(probability, 1e-12)) / std::log(2.0);
    }
    const double apart = posterior_mean(t, x0, xt) - posterior_mean(t, guess, xt);
    const double log_q = std::log(posterior_variance(t));
    return 0.5 * (-1 + log_p - log_q + std::exp(log_q - log_p) + apart * apart * std::exp(-log_p)) / std::log(2.0);
  }

  std::vector<double> beta, abar;
};

const std::vector<int64_t> kTimes = {0, 1, 2, 300, 999, 0};

// One batch: x_0 in [-1, 1] with both ends in it, predictions near and far from the noise.
struct Batch {
  Batch()
      : t(at::tensor(kTimes, at::kLong)),
        x0(at::clamp(randn({6, 2, 3, 3}, 1), -1, 1)),
        noise(randn({6, 2, 3, 3}, 2)),
        eps(noise + 0.7 * randn({6, 2, 3, 3}, 3)),
        v(0.8 * randn({6, 2, 3, 3}, 4)),
        xt(Diffusion().noised(x0, t, noise)) {
    eps[5][0][0][0] += 40;  // so far off that the probability of its bin is held at the least
    x0[0][0][0][0] = -1;
    x0[0][0][0][1] = 1;
    xt = Diffusion().noised(x0, t, noise);
  }
  at::Tensor output() const { return at::cat({eps, v}, 1); }
  at::Tensor t, x0, noise, eps, v, xt;
};

double element(const at::Tensor& x, int64_t sample, int64_t i) { return x[sample].reshape({-1})[i].item<double>(); }

// The written vlb of a sample, with v of element `moved` moved by `by`.
double written_vlb(const Batch& batch, int64_t sample, int64_t moved = -1, double by = 0) {
  static const Written written;
  double sum = 0;
  const int64_t count = batch.x0[0].numel();
  for (int64_t i = 0; i < count; ++i) {
    const double v = element(batch.v, sample, i) + (i == moved ? by : 0);
    sum += written.vlb(static_cast<size_t>(kTimes[static_cast<size_t>(sample)]), element(batch.eps, sample, i), v,
                       element(batch.x0, sample, i), element(batch.xt, sample, i));
  }
  return sum / static_cast<double>(count);
}

TEST(Diffusion, ScheduleEqualsItsEquations) {
  for (const int64_t count : {1000, 100}) {
    const Written written(count);
    const Diffusion diffusion(count);
    ASSERT_EQ(diffusion.steps(), count);
    for (int64_t i = 0; i < count; ++i) {
      const auto t = static_cast<size_t>(i);
      const DiffusionStep& step = diffusion.at(i);
      EXPECT_EQ(step.original, i);
      EXPECT_NEAR(step.beta, written.beta[t], 1e-15);
      EXPECT_NEAR(step.alpha_bar, written.abar[t], 1e-13);
      EXPECT_NEAR(step.alpha_bar_before, written.before(t), 1e-13);
      if (i == 0) continue;
      EXPECT_NEAR(step.posterior_variance / written.posterior_variance(t), 1, 1e-10);
      EXPECT_NEAR(step.posterior_log_variance, std::log(written.posterior_variance(t)), 1e-10);
      EXPECT_NEAR(step.x0_coefficient, written.posterior_mean(t, 1, 0), 1e-10);
      EXPECT_NEAR(step.xt_coefficient, written.posterior_mean(t, 0, 1), 1e-10);
    }
    EXPECT_EQ(diffusion.at(0).posterior_variance, 0);
    EXPECT_EQ(diffusion.at(0).posterior_log_variance, diffusion.at(1).posterior_log_variance);
    EXPECT_NEAR(diffusion.at(0).x0_coefficient, 1, 1e-15);
    EXPECT_EQ(diffusion.at(0).xt_coefficient, 0);
  }
  EXPECT_NEAR(Diffusion().at(999).alpha_bar, 4.0358e-5, 1e-9);  // what the published schedule ends at
  EXPECT_THROW(Diffusion(20), UsageError);
  EXPECT_NO_THROW(Diffusion(21));
}

TEST(Diffusion, NoisedHasTheRightMoments) {
  const int64_t count = 40000;
  const at::Tensor noise = randn({1, 1, 200, 200}, 8);
  const Diffusion diffusion;
  for (const int64_t t : {0, 300, 999}) {
    const double abar = Written().abar[static_cast<size_t>(t)];
    const at::Tensor x = diffusion.noised(at::full({1, 1, 200, 200}, 0.6, at::kDouble), at::tensor({t}), noise);
    const double variance = 1 - abar;
    EXPECT_NEAR(x.mean().item<double>(), 0.6 * std::sqrt(abar), 4 * std::sqrt(variance / count)) << t;
    EXPECT_NEAR(x.var().item<double>(), variance, 4 * variance * std::sqrt(2.0 / count)) << t;
  }
}

TEST(Diffusion, EachSampleHasItsOwnStep) {
  const Batch batch;
  const Written written;
  for (int64_t b = 0; b < 6; ++b) {
    const double abar = written.abar[static_cast<size_t>(kTimes[static_cast<size_t>(b)])];
    for (int64_t i = 0; i < 18; ++i) {
      EXPECT_NEAR(element(batch.xt, b, i),
                  std::sqrt(abar) * element(batch.x0, b, i) + std::sqrt(1 - abar) * element(batch.noise, b, i), 1e-12);
    }
  }
  testing::expect_relative(Diffusion().predicted_x0(batch.xt, batch.t, batch.noise), batch.x0, 1e-11, "x0");
}

TEST(Diffusion, LossesEqualTheirEquations) {
  const Batch batch;
  const DiffusionTerms terms =
      Diffusion().losses(batch.output(), batch.x0, batch.xt, batch.t, batch.noise, /*learn_sigma=*/true);
  for (int64_t b = 0; b < 6; ++b) {
    double squares = 0;
    for (int64_t i = 0; i < 18; ++i) squares += std::pow(element(batch.eps, b, i) - element(batch.noise, b, i), 2) / 18;
    EXPECT_NEAR(terms.mse[b].item<double>(), squares, 1e-12 * (1 + squares)) << b;
    const double vlb = written_vlb(batch, b);
    EXPECT_NEAR(terms.vlb[b].item<double>(), vlb, 1e-9 * (1 + vlb)) << b;
    if (kTimes[static_cast<size_t>(b)] > 0) {
      EXPECT_GE(terms.vlb[b].item<double>(), 0);
    }
  }
  const DiffusionTerms fixed = Diffusion().losses(batch.eps, batch.x0, batch.xt, batch.t, batch.noise, false);
  testing::expect_same_bits(fixed.mse, terms.mse, "mse without a variance");
  EXPECT_FALSE(fixed.vlb.defined());
}

// An image whose elements are summed in several pieces.
TEST(Diffusion, MeansOfLargeSamples) {
  const at::Tensor output = randn({2, 3, 130, 130}, 9);
  const at::Tensor noise = randn({2, 3, 130, 130}, 10);
  const auto terms = Diffusion().losses(output, noise, noise, at::tensor({5, 6}, at::kLong), noise, false);
  testing::expect_relative(terms.mse, (output - noise).square().mean({1, 2, 3}), 1e-13, "mse");
}

TEST(Diffusion, LossesInFloatAreThoseInDouble) {
  const Batch batch;
  const auto single = [](const at::Tensor& x) { return x.to(at::kFloat); };
  const Diffusion diffusion;
  const auto exact = diffusion.losses(batch.output(), batch.x0, batch.xt, batch.t, batch.noise, true);
  const auto terms =
      diffusion.losses(single(batch.output()), single(batch.x0), single(batch.xt), batch.t, single(batch.noise), true);
  EXPECT_EQ(terms.vlb.scalar_type(), at::kFloat);
  testing::expect_relative(terms.mse, exact.mse, 1e-6, "mse");
  testing::expect_relative(terms.vlb, exact.vlb, 1e-4, "vlb");  // at t = 0 a bin is the difference of two near 1/2
}

TEST(Diffusion, ThePerfectPredictionWithThePosteriorVarianceHasNoDivergence) {
  const Batch batch;
  const at::Tensor output = at::cat({batch.noise, at::full_like(batch.v, -1)}, 1);
  const auto terms = Diffusion().losses(output, batch.x0, batch.xt, batch.t, batch.noise, true);
  for (int64_t b = 1; b < 5; ++b) EXPECT_NEAR(terms.vlb[b].item<double>(), 0, 1e-12) << b;
}

TEST(Diffusion, VlbGradientEqualsFiniteDifferences) {
  const Batch batch;
  const at::Tensor output = testing::leaf(batch.output());
  const auto terms = Diffusion().losses(output, batch.x0, batch.xt, batch.t, batch.noise, true);
  const at::Tensor gradient = torch::autograd::grad({terms.vlb.sum()}, {output})[0];
  const at::Tensor of_v = gradient.narrow(1, 2, 2);
  EXPECT_EQ(testing::largest(gradient.narrow(1, 0, 2)), 0);  // the predicted noise is a constant in it
  const double h = 1e-5;
  for (int64_t b = 0; b < 6; ++b) {
    for (int64_t i = 0; i < 18; ++i) {
      const double slope = (written_vlb(batch, b, i, h) - written_vlb(batch, b, i, -h)) / (2 * h);
      EXPECT_NEAR(element(of_v, b, i), slope, 1e-7 * (1 + std::abs(slope))) << b << " " << i;
    }
  }
}

TEST(Diffusion, MseGradientReachesTheNoiseAlone) {
  const Batch batch;
  const at::Tensor output = testing::leaf(batch.output());
  const auto terms = Diffusion().losses(output, batch.x0, batch.xt, batch.t, batch.noise, true);
  const at::Tensor gradient = torch::autograd::grad({terms.mse.sum()}, {output})[0];
  testing::expect_relative(gradient.narrow(1, 0, 2), 2 * (batch.eps - batch.noise) / 18, 1e-13, "noise");
  EXPECT_EQ(testing::largest(gradient.narrow(1, 2, 2)), 0);
}

TEST(Diffusion, RespacedKeepsTheNoiseLevelsOfItsSteps) {
  const Diffusion full;
  for (const int64_t count : {1, 2, 50, 250, 667, 1000}) {
    const Diffusion few = full.respaced(count);
    ASSERT_EQ(few.steps(), count);
    EXPECT_EQ(few.at(0).original, 0);
    EXPECT_EQ(few.at(count - 1).original, count == 1 ? 0 : 999);
    double product = 1;
    for (int64_t i = 0; i < count; ++i) {
      const DiffusionStep& step = few.at(i);
      const double exact = count == 1 ? 0 : 999.0 * static_cast<double>(i) / static_cast<double>(count - 1);
      EXPECT_LE(std::abs(static_cast<double>(step.original) - exact), 0.5 + 1e-9) << count << " " << i;
      EXPECT_NEAR(step.alpha_bar, full.at(step.original).alpha_bar, 1e-12);
      product *= 1 - step.beta;
      EXPECT_NEAR(product, step.alpha_bar, 1e-12);
      EXPECT_TRUE(std::isfinite(step.posterior_log_variance));
    }
  }
  EXPECT_EQ(full.respaced(667).at(1).original, 2);  // 1.5
  EXPECT_EQ(full.respaced(667).at(3).original, 4);  // 4.5: halves go to the even neighbour
  EXPECT_EQ(full.respaced(250).at(1).original, 4);
  EXPECT_EQ(full.respaced(250).respaced(2).at(1).original, 999);
  EXPECT_THROW(full.respaced(0), UsageError);
  EXPECT_THROW(full.respaced(1001), UsageError);
}

}  // namespace diffusion_test
}  // namespace siamese::models

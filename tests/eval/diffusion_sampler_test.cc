#include "siamese/eval/diffusion_sampler.h"

#include <cmath>

#include "tests/support/tensors.h"

#include <c10/core/GradMode.h>

#include "siamese/base/check.h"

namespace siamese::eval {
namespace diffusion_sampler_test {

// Data whose pixels are N(mean of the label, kStd^2), for which everything is known in closed form: x_t is normal too,
// and the best prediction of its noise is sqrt(1 - abar) (x_t - sqrt(abar) mean) / (abar kStd^2 + 1 - abar).
constexpr double kStd = 0.25;
constexpr int64_t kNull = 2;
const std::vector<double> kMeans = {0.3, -0.2, 0.1};  // the last is that of "no label"

double abar_of(int64_t step) {
  double product = 1;
  for (int64_t s = 0; s <= step; ++s) product *= 1 - (1e-4 + (2e-2 - 1e-4) * static_cast<double>(s) / 999);
  return product;
}

struct Chain {
  explicit Chain(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      originals.push_back(std::lround(999.0 * static_cast<double>(i) / static_cast<double>(steps - 1)));
      abar.push_back(abar_of(originals.back()));
    }
  }
  double before(size_t i) const { return i == 0 ? 1 : abar[i - 1]; }
  double beta(size_t i) const { return 1 - abar[i] / before(i); }
  double posterior(size_t i) const { return beta(i) * (1 - before(i)) / (1 - abar[i]); }
  double a(size_t i) const { return beta(i) * std::sqrt(before(i)) / (1 - abar[i]); }
  double b(size_t i) const { return (1 - before(i)) * std::sqrt(1 - beta(i)) / (1 - abar[i]); }
  double xt_variance(size_t i) const { return abar[i] * kStd * kStd + 1 - abar[i]; }
  // The variance of x_{t-1} given x_t: what q leaves when x_0 is known, and what is not known of x_0.
  double reverse_variance(size_t i) const {
    return posterior(i) + a(i) * a(i) * kStd * kStd * (1 - abar[i]) / xt_variance(i);
  }
  size_t index_of(int64_t original) const {
    for (size_t i = 0; i < originals.size(); ++i) {
      if (originals[i] == original) return i;
    }
    ADD_FAILURE() << "step " << original << " is not one of the chain";
    return 0;
  }
  std::vector<int64_t> originals;
  std::vector<double> abar;
};

enum class Variance { fixed, learned };

// The exact denoiser; with a learned variance also the v of the exact reverse variance.
Denoiser exact_denoiser(int64_t steps, Variance variance) {
  return [chain = Chain(steps), variance](const at::Tensor& x, const at::Tensor& t, const at::Tensor& labels) {
    EXPECT_FALSE(c10::GradMode::is_enabled());
    std::vector<at::Tensor> rows;
    for (int64_t sample = 0; sample < x.size(0); ++sample) {
      const size_t i = chain.index_of(t[sample].item<int64_t>());
      const double mean = kMeans.at(static_cast<size_t>(labels[sample].item<int64_t>()));
      const at::Tensor noise =
          std::sqrt(1 - chain.abar[i]) / chain.xt_variance(i) * (x[sample] - std::sqrt(chain.abar[i]) * mean);
      if (variance == Variance::fixed) {
        rows.push_back(noise);
        continue;
      }
      const double least = std::log(chain.posterior(i == 0 ? 1 : i));
      const double share = (std::log(chain.reverse_variance(i)) - least) / (std::log(chain.beta(i)) - least);
      rows.push_back(at::cat({noise, at::full_like(noise, 2 * share - 1)}));
    }
    return at::stack(rows);
  };
}

// x_{t-1} = factor x_t + offset + spread n, for this denoiser.
struct Affine {
  double factor = 1;
  double offset = 0;
  double variance = 0;
};

Affine whole_chain(int64_t steps, double mean, const SamplerOptions& options, Variance variance) {
  const Chain chain(steps);
  Affine all;
  for (size_t i = chain.abar.size(); i-- > 0;) {
    const double root = std::sqrt(chain.abar[i]), rest = std::sqrt(1 - chain.abar[i]);
    const double slope = rest / chain.xt_variance(i);  // noise = slope (x - root mean)
    const double x0_factor = (1 - rest * slope) / root, x0_offset = rest * slope * mean;
    Affine step;
    if (options.kind == SamplerKind::ddpm) {
      step.factor = chain.a(i) * x0_factor + chain.b(i);
      step.offset = chain.a(i) * x0_offset;
      step.variance = variance == Variance::learned ? chain.reverse_variance(i) : chain.posterior(i);
    } else {
      step.variance = options.eta * options.eta * (1 - chain.before(i)) / (1 - chain.abar[i]) * chain.beta(i);
      const double noise = std::sqrt(1 - chain.before(i) - step.variance);
      step.factor = std::sqrt(chain.before(i)) * x0_factor + noise * slope;
      step.offset = std::sqrt(chain.before(i)) * x0_offset - noise * slope * root * mean;
    }
    if (i == 0) step.variance = 0;
    all = {step.factor * all.factor, step.factor * all.offset + step.offset,
           step.factor * step.factor * all.variance + step.variance};
  }
  return all;
}

struct Case {
  SamplerOptions options;
  Variance variance;
  double bias;  // of the standard deviation, relative: what so few steps cost
};

std::vector<Case> cases() {
  const SamplerOptions ddpm{.kind = SamplerKind::ddpm, .steps = 250, .seed = 3, .clip = false};
  const SamplerOptions ddim{.kind = SamplerKind::ddim, .steps = 100, .seed = 4, .clip = false};
  SamplerOptions noisy = ddim;
  noisy.eta = 0.5;
  return {{ddpm, Variance::fixed, 0.055},
          {ddpm, Variance::learned, 0.001},
          {ddim, Variance::fixed, 0.055},
          {noisy, Variance::fixed, 0.09}};
}

at::Tensor drawn(const Case& c, const std::vector<int64_t>& labels, int64_t side, int64_t first = 0) {
  const auto batch = static_cast<int64_t>(labels.size());
  return sample(models::Diffusion(), exact_denoiser(c.options.steps, c.variance), {batch, 1, side, side},
                at::tensor(labels, at::kLong), kNull, c.variance == Variance::learned, c.options, first);
}

TEST(DiffusionSampler, SamplesHaveTheMomentsOfTheData) {
  for (const Case& c : cases()) {
    const at::Tensor x = drawn(c, {0, 1}, 100).to(at::kDouble);
    for (int64_t label = 0; label < 2; ++label) {
      const double mean = kMeans[static_cast<size_t>(label)];
      const Affine chain = whole_chain(c.options.steps, mean, c.options, c.variance);
      const double variance = chain.factor * chain.factor + chain.variance;
      // The chain itself comes near the data...
      EXPECT_NEAR(chain.offset, mean, 0.002);
      EXPECT_NEAR(std::sqrt(variance) / kStd, 1, c.bias);
      // ... and the samples are those of the chain: 10^4 numbers, five standard errors.
      EXPECT_NEAR(x[label].mean().item<double>(), chain.offset, 5 * std::sqrt(variance / 1e4));
      EXPECT_NEAR(x[label].var().item<double>(), variance, 5 * variance * std::sqrt(2 / 1e4));
    }
  }
}

// Without noise in the steps a sample is a function of the first noise: here an affine one.
TEST(DiffusionSampler, DdimIsDeterministic) {
  const Case c = cases()[2];
  at::Tensor first;
  const Denoiser exact = exact_denoiser(c.options.steps, Variance::fixed);
  const Denoiser watching = [&](const at::Tensor& x, const at::Tensor& t, const at::Tensor& labels) {
    if (!first.defined()) first = x.clone();
    return exact(x, t, labels);
  };
  const at::Tensor labels = at::zeros({3}, at::kLong);
  const at::Tensor x = sample(models::Diffusion(), watching, {3, 1, 5, 5}, labels, -1, false, c.options);
  const Affine chain = whole_chain(c.options.steps, kMeans[0], c.options, Variance::fixed);
  testing::expect_relative(x, chain.factor * first.to(at::kDouble) + chain.offset, 1e-5, "affine");
  testing::expect_same_bits(drawn(c, {0, 0, 0}, 5), x, "again");
}

TEST(DiffusionSampler, ASampleDoesNotDependOnItsBatch) {
  for (const Case& c : cases()) {
    const at::Tensor whole = drawn(c, {0, 1, 0, 1, 1}, 5);
    const at::Tensor split = at::cat({drawn(c, {0, 1}, 5), drawn(c, {0, 1, 1}, 5, 2)});
    testing::expect_same_bits(split, whole, "split");
    EXPECT_FALSE(at::equal(whole[0], whole[2]));
    Case other = c;
    ++other.options.seed;
    EXPECT_FALSE(at::equal(drawn(other, {0, 1, 0, 1, 1}, 5), whole));
  }
}

TEST(DiffusionSampler, GuidanceMovesTheNoiseAwayFromThatWithoutALabel) {
  const double guidance = 2.5;
  for (Case c : cases()) {
    const Denoiser exact = exact_denoiser(c.options.steps, c.variance);
    int64_t largest_batch = 0;
    const Denoiser counting = [&](const at::Tensor& x, const at::Tensor& t, const at::Tensor& labels) {
      largest_batch = std::max(largest_batch, x.size(0));
      // A v that differs with the label: that with the label must be taken.
      at::Tensor output = exact(x, t, labels);
      if (c.variance == Variance::learned) output.narrow(1, 1, 1) += 0.1 * labels.view({-1, 1, 1, 1});
      return output;
    };
    const Denoiser guided = [&](const at::Tensor& x, const at::Tensor& t, const at::Tensor& labels) {
      at::Tensor with = counting(x, t, labels);
      const at::Tensor without = counting(x, t, at::full_like(labels, kNull));
      const at::Tensor noise = without.narrow(1, 0, 1) + guidance * (with.narrow(1, 0, 1) - without.narrow(1, 0, 1));
      return c.variance == Variance::learned ? at::cat({noise, with.narrow(1, 1, 1)}, 1) : noise;
    };
    const bool learned = c.variance == Variance::learned;
    const at::Tensor labels = at::tensor({0, 1}, at::kLong);
    const models::Diffusion diffusion;
    const at::Tensor expected = sample(diffusion, guided, {2, 1, 4, 4}, labels, -1, learned, c.options);
    const at::Tensor unguided = sample(diffusion, counting, {2, 1, 4, 4}, labels, kNull, learned, c.options);
    EXPECT_EQ(largest_batch, 2);
    c.options.guidance = guidance;
    const at::Tensor x = sample(diffusion, counting, {2, 1, 4, 4}, labels, kNull, learned, c.options);
    EXPECT_EQ(largest_batch, 4);
    testing::expect_relative(x, expected, 1e-6, "guided");
    EXPECT_GT(testing::largest_difference(x, unguided), 0.05);
  }
}

TEST(DiffusionSampler, TheModelSeesStepsOfTheFullScheduleOnce) {
  std::vector<int64_t> seen;
  const Denoiser watching = [&](const at::Tensor& x, const at::Tensor& t, const at::Tensor& labels) {
    EXPECT_EQ(t.sizes(), labels.sizes());
    EXPECT_TRUE(at::equal(labels, at::tensor({1, 0}, at::kLong)));
    EXPECT_EQ(t[0].item<int64_t>(), t[1].item<int64_t>());
    seen.push_back(t[0].item<int64_t>());
    return at::zeros_like(x);
  };
  sample(models::Diffusion(), watching, {2, 3, 2, 2}, at::tensor({1, 0}, at::kLong), kNull, false, {.steps = 4});
  EXPECT_EQ(seen, (std::vector<int64_t>{999, 666, 333, 0}));
}

TEST(DiffusionSampler, ClippedSamplesStayInTheRange) {
  const Denoiser wild = [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) { return -3 * x; };
  for (const SamplerKind kind : {SamplerKind::ddpm, SamplerKind::ddim}) {
    SamplerOptions options{.kind = kind, .steps = 20};
    const at::Tensor labels = at::zeros({2}, at::kLong);
    const auto largest = [&] {
      return testing::largest(sample(models::Diffusion(), wild, {2, 1, 4, 4}, labels, -1, false, options));
    };
    EXPECT_LE(largest(), 1);
    options.clip = false;
    EXPECT_GT(largest(), 1);
  }
}

TEST(DiffusionSampler, RefusesWhatCannotBe) {
  const auto run = [](const SamplerOptions& options, int64_t null_label) {
    const Denoiser zero = [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) { return at::zeros_like(x); };
    sample(models::Diffusion(), zero, {1, 1, 2, 2}, at::zeros({1}, at::kLong), null_label, false, options);
  };
  EXPECT_NO_THROW(run({.steps = 2}, -1));
  EXPECT_THROW(run({.steps = 2, .guidance = 2}, -1), UsageError);
  EXPECT_THROW(run({.steps = 2, .guidance = std::nan("")}, 5), UsageError);
  EXPECT_THROW(run({.steps = 0}, -1), UsageError);
  EXPECT_THROW(run({.steps = 1001}, -1), UsageError);
  EXPECT_THROW(run({.steps = 2, .eta = -0.1}, -1), UsageError);
  EXPECT_EQ(enum_from_text<SamplerKind>("ddim"), SamplerKind::ddim);
}

}  // namespace diffusion_sampler_test
}  // namespace siamese::eval

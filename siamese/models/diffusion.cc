#include "siamese/models/diffusion.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/nn/expect.h"

namespace siamese::models {
namespace {

std::vector<double> linear_betas(int64_t steps) {
  constexpr int64_t kTooFew = 20;  // the last beta, 20 / steps, would not be below 1
  if (steps <= kTooFew) throw UsageError("diffusion steps: expected at least 21, got " + std::to_string(steps));
  const double scale = 1000 / static_cast<double>(steps);
  const double first = scale * 1e-4;
  const double last = scale * 2e-2;
  std::vector<double> betas;
  for (int64_t i = 0; i < steps; ++i) {
    betas.push_back(first + (last - first) * static_cast<double>(i) / static_cast<double>(steps - 1));
  }
  return betas;
}

std::vector<int64_t> numbers_below(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

// The step of each sample as one number of its constants: [batch, 1, 1, 1], in the dtype of `like`.
template <class Constant>
at::Tensor constants(const Diffusion& diffusion, const at::Tensor& t, const at::Tensor& like,
                     const Constant& constant) {
  nn::expect_that(like.dim() >= 1, "images", "1 or more dimensions", like.dim());
  const at::Tensor steps = t.to(at::kCPU, at::kLong).contiguous();
  nn::expect_indices("timesteps", steps, {like.size(0)}, diffusion.steps());
  const at::Tensor values = at::empty({steps.numel()}, at::kDouble);
  for (int64_t i = 0; i < steps.numel(); ++i) {
    values.mutable_data_ptr<double>()[i] = constant(diffusion.at(steps.const_data_ptr<int64_t>()[i]));
  }
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[0] = steps.numel();
  return values.view(shape).to(like.options());
}

// The mean over the elements of each sample: [batch]. In pieces below the size at which ATen cuts the sum of a single
// sample by the number of threads.
at::Tensor sample_means(const at::Tensor& x) {
  constexpr int64_t kPiece = 16384;
  const at::Tensor rows = x.reshape({x.size(0), -1});
  at::Tensor total;
  for (const auto& piece : rows.split(kPiece, 1)) total = total.defined() ? total + piece.sum(1) : piece.sum(1);
  return total / static_cast<double>(rows.size(1));
}

// at::where, which LibTorch has, like logical_not, on no meta tensor outside Python; what is not chosen has no gradient
// here either.
at::Tensor chosen(const at::Tensor& condition, const at::Tensor& yes, const at::Tensor& no) {
  return yes.masked_fill(condition.eq(0), 0) + no.masked_fill(condition, 0);
}

// The standard normal distribution function, in the tanh form that the published models were trained with.
at::Tensor normal_cdf(const at::Tensor& x) {
  return 0.5 * (1 + at::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

// The log probability of the bin of x, one of 256 in [-1, 1]; the outermost two reach to infinity.
at::Tensor binned_log_likelihood(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& log_variance) {
  constexpr double kHalfBin = 1.0 / 255;
  constexpr double kOutermost = 0.999;
  constexpr double kLeast = 1e-12;
  const at::Tensor inverse_std = at::exp(-0.5 * log_variance);
  const at::Tensor below_top = normal_cdf(inverse_std * (x - mean + kHalfBin));
  const at::Tensor below_bottom = normal_cdf(inverse_std * (x - mean - kHalfBin));
  const at::Tensor inside = below_top - below_bottom;
  const at::Tensor probability = chosen(x < -kOutermost, below_top, chosen(x > kOutermost, 1 - below_bottom, inside));
  return at::log(probability.clamp_min(kLeast));
}

}  // namespace

Diffusion::Diffusion(int64_t steps) : Diffusion(linear_betas(steps), numbers_below(steps)) {}

Diffusion::Diffusion(const std::vector<double>& betas, const std::vector<int64_t>& originals) {
  double alpha_bar = 1;
  double rest = 0;  // 1 - alpha_bar, which as a difference would lose digits while alpha_bar is near 1
  for (size_t i = 0; i < betas.size(); ++i) {
    DiffusionStep step{.original = originals[i], .beta = betas[i]};
    const double rest_before = rest;
    step.alpha_bar_before = alpha_bar;
    rest += alpha_bar * step.beta;
    alpha_bar *= 1 - step.beta;
    step.alpha_bar = alpha_bar;
    step.x0_coefficient = step.beta * std::sqrt(step.alpha_bar_before) / rest;
    step.xt_coefficient = rest_before * std::sqrt(1 - step.beta) / rest;
    step.posterior_variance = step.beta * rest_before / rest;
    step.posterior_log_variance = std::log(step.posterior_variance);
    steps_.push_back(step);
  }
  // The first step's is log 0. A schedule of one step has no second; any finite number serves its only, last step.
  steps_[0].posterior_log_variance = steps_.size() > 1 ? steps_[1].posterior_log_variance : std::log(steps_[0].beta);
}

const DiffusionStep& Diffusion::at(int64_t step) const {
  nn::expect_that(step >= 0 && step < steps(), "diffusion step", "0 to " + std::to_string(steps() - 1), step);
  return steps_[static_cast<size_t>(step)];
}

Diffusion Diffusion::respaced(int64_t count) const {
  if (count < 1 || count > steps()) {
    throw UsageError("sampling steps: expected 1 to " + std::to_string(steps()) + ", got " + std::to_string(count));
  }
  const double stride = count == 1 ? 1 : static_cast<double>(steps() - 1) / static_cast<double>(count - 1);
  std::vector<double> betas;
  std::vector<int64_t> originals;
  double position = 0;
  double before = 1;
  for (int64_t i = 0; i < count; ++i, position += stride) {
    const DiffusionStep& kept = at(static_cast<int64_t>(std::nearbyint(position)));
    betas.push_back(1 - kept.alpha_bar / before);
    originals.push_back(kept.original);
    before = kept.alpha_bar;
  }
  return {betas, originals};
}

at::Tensor Diffusion::noised(const at::Tensor& x0, const at::Tensor& t, const at::Tensor& noise) const {
  const auto signal = constants(*this, t, x0, [](const DiffusionStep& s) { return std::sqrt(s.alpha_bar); });
  const auto spread = constants(*this, t, x0, [](const DiffusionStep& s) { return std::sqrt(1 - s.alpha_bar); });
  return signal * x0 + spread * noise;
}

at::Tensor Diffusion::predicted_x0(const at::Tensor& xt, const at::Tensor& t, const at::Tensor& noise) const {
  const auto of_xt = constants(*this, t, xt, [](const DiffusionStep& s) { return std::sqrt(1 / s.alpha_bar); });
  const auto of_noise = constants(*this, t, xt, [](const DiffusionStep& s) { return std::sqrt(1 / s.alpha_bar - 1); });
  return of_xt * xt - of_noise * noise;
}

at::Tensor Diffusion::learned_log_variance(const at::Tensor& v, const at::Tensor& t) const {
  const auto largest = constants(*this, t, v, [](const DiffusionStep& s) { return std::log(s.beta); });
  const auto least = constants(*this, t, v, [](const DiffusionStep& s) { return s.posterior_log_variance; });
  const at::Tensor share = (v + 1) / 2;
  return share * largest + (1 - share) * least;
}

DiffusionTerms Diffusion::losses(const at::Tensor& output, const at::Tensor& x0, const at::Tensor& xt,
                                 const at::Tensor& t, const at::Tensor& noise, bool learn_sigma) const {
  nn::expect_shape("images", x0, {-1, -1, -1, -1});
  const int64_t channels = x0.size(1);
  nn::expect_shape("output", output, {x0.size(0), (learn_sigma ? 2 : 1) * channels, x0.size(2), x0.size(3)});
  nn::expect_shape("noised images", xt, x0.sizes());
  nn::expect_shape("noise", noise, x0.sizes());
  const at::Tensor eps = output.narrow(1, 0, channels);
  DiffusionTerms terms{.mse = sample_means((eps - noise).square()), .vlb = {}};
  if (!learn_sigma) return terms;

  const at::Tensor log_variance = learned_log_variance(output.narrow(1, channels, channels), t);
  const at::Tensor guess = predicted_x0(xt, t, eps.detach());
  // 2 KL = exp(d) - 1 - d + (a (x_0 - guess))^2 / variance, d = log v_t - log variance: both means have the same b x_t.
  const auto a = constants(*this, t, x0, [](const DiffusionStep& s) { return s.x0_coefficient; });
  const auto least = constants(*this, t, x0, [](const DiffusionStep& s) { return s.posterior_log_variance; });
  const at::Tensor d = least - log_variance;
  const at::Tensor divergence = 0.5 * (at::expm1(d) - d + (a * (x0 - guess)).square() * at::exp(-log_variance));
  at::Tensor nats = sample_means(divergence);
  const at::Tensor first = t == 0;
  if (first.any().item<bool>()) {
    // At t = 0 the mean of p is the guess itself: a_0 = 1, b_0 = 0.
    nats = chosen(first.to(nats.device()), -sample_means(binned_log_likelihood(x0, guess, log_variance)), nats);
  }
  terms.vlb = nats / std::numbers::ln2;
  return terms;
}

}  // namespace siamese::models

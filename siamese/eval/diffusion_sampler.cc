#include "siamese/eval/diffusion_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/nn/expect.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace {

using models::Diffusion;
using models::DiffusionStep;

void check_options(const SamplerOptions& options, int64_t null_label) {
  if (!std::isfinite(options.guidance)) {
    throw UsageError("guidance: expected a finite number, got " + std::to_string(options.guidance));
  }
  if (options.guidance != 1 && null_label < 0) {
    throw UsageError("guidance: expected 1 for a model trained without label dropout, got " +
                     std::to_string(options.guidance));
  }
  if (!(options.eta >= 0 && options.eta <= 1)) {
    throw UsageError("eta: expected 0 to 1, got " + std::to_string(options.eta));
  }
}

// The draw-th normals of each sample: a function of (seed, sample, draw, element) alone.
at::Tensor normals(at::IntArrayRef shape, uint64_t seed, int64_t first_sample, int64_t draw) {
  constexpr int kElementBits = 40;
  const uint64_t key = seed ^ hash_text("eval.diffusion_sampler");
  at::Tensor noise = at::empty(shape, at::kFloat);
  const int64_t elements = noise.numel() / noise.size(0);
  float* const data = noise.mutable_data_ptr<float>();
  at::parallel_for(0, noise.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto index = (static_cast<uint64_t>(draw) << kElementBits) | static_cast<uint64_t>(i % elements);
      data[i] = static_cast<float>(random_normal(key, static_cast<uint64_t>(first_sample + i / elements), index));
    }
  });
  return noise;
}

struct Prediction {
  at::Tensor noise;
  at::Tensor v;  // undefined without a learned variance
};

Prediction predict(const Denoiser& denoiser, const at::Tensor& x, int64_t original_step, const at::Tensor& labels,
                   int64_t null_label, bool learn_sigma, double guidance) {
  const int64_t batch = x.size(0);
  const int64_t channels = x.size(1);
  const auto timesteps = [&](int64_t count) { return at::full({count}, original_step, at::kLong); };
  at::Tensor output;
  at::Tensor noise;
  if (guidance == 1) {
    output = denoiser(x, timesteps(batch), labels);
    noise = output.narrow(1, 0, channels);
  } else {
    output = denoiser(at::cat({x, x}), timesteps(2 * batch), at::cat({labels, at::full_like(labels, null_label)}));
    const auto halves = output.narrow(1, 0, channels).chunk(2);
    noise = halves[1] + guidance * (halves[0] - halves[1]);
  }
  nn::expect_shape("denoiser's output", output, {-1, (learn_sigma ? 2 : 1) * channels, -1, -1});
  return {noise, learn_sigma ? output.narrow(0, 0, batch).narrow(1, channels, channels) : at::Tensor()};
}

// Where a step leads: x_{t-1} = mean + spread * noise. spread undefined: no noise.
struct Step {
  at::Tensor mean;
  at::Tensor spread;
};

Step ddpm_step(const Diffusion& diffusion, const at::Tensor& x, const at::Tensor& x0, const at::Tensor& v,
               int64_t index) {
  const DiffusionStep& step = diffusion.at(index);
  const at::Tensor mean = step.x0_coefficient * x0 + step.xt_coefficient * x;
  if (index == 0) return {mean, {}};
  if (!v.defined()) return {mean, at::scalar_tensor(std::sqrt(step.posterior_variance), x.options())};
  const at::Tensor t = at::full({x.size(0)}, index, at::kLong);
  return {mean, at::exp(0.5 * diffusion.learned_log_variance(v, t))};
}

Step ddim_step(const DiffusionStep& step, const at::Tensor& x, const at::Tensor& x0, const at::Tensor& noise,
               const SamplerOptions& options) {
  const double variance = options.eta * options.eta * step.posterior_variance;
  // A clamped x_0 needs another noise to lead to x_t.
  const at::Tensor e = options.clip ? (x - std::sqrt(step.alpha_bar) * x0) / std::sqrt(1 - step.alpha_bar) : noise;
  const double rest = std::sqrt(std::max(0.0, 1 - step.alpha_bar_before - variance));
  const at::Tensor mean = std::sqrt(step.alpha_bar_before) * x0 + rest * e;
  if (variance == 0) return {mean, {}};
  return {mean, at::scalar_tensor(std::sqrt(variance), x.options())};
}

}  // namespace

at::Tensor sample(const Diffusion& diffusion, const Denoiser& denoiser, at::IntArrayRef shape, const at::Tensor& labels,
                  int64_t null_label, bool learn_sigma, const SamplerOptions& options, int64_t first_sample) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  check_options(options, null_label);
  nn::expect_that(shape.size() == 4, "sample shape", "4 sizes", static_cast<int64_t>(shape.size()));
  nn::expect_that(shape[0] > 0, "sample shape", "1 sample or more", shape[0]);
  nn::expect_shape("labels", labels, {shape[0]});
  const Diffusion steps = diffusion.respaced(options.steps);
  // Noise is drawn on the host, where the generator lives; all else is where the labels are.
  const auto noise = [&](int64_t draw) { return normals(shape, options.seed, first_sample, draw).to(labels.device()); };
  at::Tensor x = noise(0);
  for (int64_t index = steps.steps() - 1; index >= 0; --index) {
    const DiffusionStep& at_index = steps.at(index);
    const Prediction predicted =
        predict(denoiser, x, at_index.original, labels, null_label, learn_sigma, options.guidance);
    at::Tensor x0 = steps.predicted_x0(x, at::full({x.size(0)}, index, at::kLong), predicted.noise);
    if (options.clip) x0 = x0.clamp(-1, 1);
    const Step step = options.kind == SamplerKind::ddpm ? ddpm_step(steps, x, x0, predicted.v, index)
                                                        : ddim_step(at_index, x, x0, predicted.noise, options);
    x = step.spread.defined() ? step.mean + step.spread * noise(1 + index) : step.mean;
  }
  return x;
}

}  // namespace siamese::eval

// Images from noise, by a model that predicts the noise (models/diffusion.h), over some of its steps:
//   x_0' = the predicted x_0, clamped to [-1, 1] if asked for; n, n': standard normals
//   ddpm (Ho et al., arXiv 2006.11239): x_{t-1} = a_t x_0' + b_t x_t + sigma n, sigma^2 the learned variance, else v_t
//   ddim (Song et al., arXiv 2010.02502): x_{t-1} = sqrt(abar_{t-1}) x_0' + sqrt(1 - abar_{t-1} - sigma^2) e + sigma n,
//     e the noise that leads from x_0' to x_t, sigma = eta sqrt((1 - abar_{t-1}) / (1 - abar_t) beta_t)
// No noise in the last step. With guidance g (Ho and Salimans, arXiv 2207.12598) the predicted noise is
// without label + g (with label - without label).
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"
#include "siamese/models/diffusion.h"

namespace siamese::eval {

// x: [batch, channels, height, width]; timesteps: int64 [batch], steps of the full schedule; labels: int64 [batch].
// Returns the predicted noise, and with a learned variance behind it as many channels for v.
using Denoiser = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& timesteps, const at::Tensor& labels)>;

enum class SamplerKind { ddpm, ddim };

struct SamplerOptions {
  SamplerKind kind = SamplerKind::ddpm;
  int64_t steps = 250;
  double guidance = 1;  // 1: the labels as they are, at half the cost
  double eta = 0;       // ddim only: 0 draws no noise but the first
  uint64_t seed = 0;
  bool clip = true;
};

// [batch, channels, height, width] in float, on the device of the labels; timesteps are given from the host. The noise
// of sample i is that of number first_sample + i of the seed, in whatever batch it is made. null_label: the label of
// "no label", -1 when the model has none. UsageError for guidance without one and for impossible options.
at::Tensor sample(const models::Diffusion& diffusion, const Denoiser& denoiser, at::IntArrayRef shape,
                  const at::Tensor& labels, int64_t null_label, bool learn_sigma, const SamplerOptions& options,
                  int64_t first_sample = 0);

}  // namespace siamese::eval

template <>
struct siamese::EnumText<siamese::eval::SamplerKind> {
  static constexpr EnumNames<eval::SamplerKind, 2> names{
      {{eval::SamplerKind::ddpm, "ddpm"}, {eval::SamplerKind::ddim, "ddim"}}};
};

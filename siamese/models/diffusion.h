// Gaussian diffusion (Ho et al., arXiv 2006.11239; learned variance: Nichol and Dhariwal, arXiv 2102.09672) over N
// steps with a linear schedule; t counts from 0. Products and variances are kept in double.
//   beta_t from (1000/N) 1e-4 to (1000/N) 2e-2      abar_t = product over s <= t of (1 - beta_s), abar_{-1} = 1
//   x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) noise
//   q(x_{t-1} | x_t, x_0) = N(a_t x_0 + b_t x_t, v_t)      a_t = beta_t sqrt(abar_{t-1}) / (1 - abar_t)
//   b_t = (1 - abar_{t-1}) sqrt(1 - beta_t) / (1 - abar_t)      v_t = beta_t (1 - abar_{t-1}) / (1 - abar_t)
// A model predicts the noise and, with a learned variance, v in [-1, 1] for each element.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace siamese::models {

// The constants of one step.
struct DiffusionStep {
  int64_t original = 0;  // its number in the full schedule: the model's input
  double beta = 0;
  double alpha_bar = 0;
  double alpha_bar_before = 1;
  double x0_coefficient = 0;          // a_t
  double xt_coefficient = 0;          // b_t
  double posterior_variance = 0;      // v_t, 0 at the first step
  double posterior_log_variance = 0;  // log v_t; the first step takes that of the second
};

// Means over the elements of each sample: [batch].
struct DiffusionTerms {
  at::Tensor mse;
  at::Tensor vlb;  // in bits; undefined without a learned variance
};

class Diffusion {
 public:
  explicit Diffusion(int64_t steps = 1000);

  int64_t steps() const { return static_cast<int64_t>(steps_.size()); }
  // UsageError when there is none.
  const DiffusionStep& at(int64_t step) const;

  // Fewer steps, evenly spread from the first to the last and rounded half to even, with the same abar at each of them.
  Diffusion respaced(int64_t count) const;

  // x_t. t: int64 [batch], below steps().
  at::Tensor noised(const at::Tensor& x0, const at::Tensor& t, const at::Tensor& noise) const;

  // x_0 from x_t and the predicted noise.
  at::Tensor predicted_x0(const at::Tensor& xt, const at::Tensor& t, const at::Tensor& noise) const;

  // f log beta_t + (1 - f) log v_t, f = (v + 1) / 2
  at::Tensor learned_log_variance(const at::Tensor& v, const at::Tensor& t) const;

  // mse: (predicted noise - noise)^2. vlb, which trains the variance alone (the predicted noise is a constant in it):
  // for t > 0 the divergence KL(q(x_{t-1} | x_t, x_0) || p), for t = 0 minus the log likelihood of x_0 in bins of
  // +-1/255. output: [batch, channels, height, width], with learn_sigma twice the channels: noise, then v.
  DiffusionTerms losses(const at::Tensor& output, const at::Tensor& x0, const at::Tensor& xt, const at::Tensor& t,
                        const at::Tensor& noise, bool learn_sigma) const;

 private:
  Diffusion(const std::vector<double>& betas, const std::vector<int64_t>& originals);

  std::vector<DiffusionStep> steps_;
};

}  // namespace siamese::models

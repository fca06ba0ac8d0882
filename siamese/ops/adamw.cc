#include "siamese/ops/adamw.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "siamese/kernels/adamw.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {

namespace plain {

void adamw_step(const AdamWArguments& a, const at::Tensor& gradient, const at::Tensor& parameter,
                const at::Tensor& first_moment, const at::Tensor& second_moment) {
  const c10::NoGradGuard no_grad;
  const double bias1 = 1 - std::pow(a.beta1, static_cast<double>(a.applied_steps));
  const double bias2 = 1 - std::pow(a.beta2, static_cast<double>(a.applied_steps));
  const at::Tensor g = gradient * a.clip_scale;
  parameter.mul_(1 - a.lr * a.weight_decay);
  first_moment.mul_(a.beta1).add_(g, 1 - a.beta1);
  second_moment.mul_(a.beta2).add_(g.square(), 1 - a.beta2);
  parameter.sub_(first_moment / (second_moment.sqrt() / std::sqrt(bias2) + a.eps) * (a.lr / bias1));
}

}  // namespace plain

void adamw_step(const AdamWArguments& a, const at::Tensor& gradient, const at::Tensor& parameter,
                const at::Tensor& first_moment, const at::Tensor& second_moment) {
  if (!use_fused("adamw_step", {gradient, parameter, first_moment, second_moment}) || !parameter.is_contiguous()) {
    return plain::adamw_step(a, gradient, parameter, first_moment, second_moment);
  }
  const c10::NoGradGuard no_grad;
  const at::Tensor g = gradient.contiguous();
  const auto steps = static_cast<double>(a.applied_steps);
  const kernels::AdamWStep step{.lr = a.lr,
                                .beta1 = a.beta1,
                                .beta2 = a.beta2,
                                .eps = a.eps,
                                .weight_decay = a.weight_decay,
                                .bias1 = 1 - std::pow(a.beta1, steps),
                                .bias2 = 1 - std::pow(a.beta2, steps),
                                .clip_scale = a.clip_scale};
  at::parallel_for(0, parameter.numel(), 16384, [&](int64_t begin, int64_t end) {
    kernels::adamw_update(step, g.const_data_ptr<float>(), parameter.mutable_data_ptr<float>(),
                          first_moment.mutable_data_ptr<float>(), second_moment.mutable_data_ptr<float>(), begin, end);
  });
}

}  // namespace siamese::ops

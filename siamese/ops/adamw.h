// One AdamW step with decoupled weight decay (Loshchilov & Hutter 2019), in place:
//   g <- clip * g;  p <- (1 - lr * decay) p;  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct AdamWArguments {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  double clip_scale = 1;
  int64_t applied_steps = 1;  // t, this step included
};

void adamw_step(const AdamWArguments& arguments, const at::Tensor& gradient, const at::Tensor& parameter,
                const at::Tensor& first_moment, const at::Tensor& second_moment);

namespace plain {

void adamw_step(const AdamWArguments& arguments, const at::Tensor& gradient, const at::Tensor& parameter,
                const at::Tensor& first_moment, const at::Tensor& second_moment);

}  // namespace plain

}  // namespace siamese::ops

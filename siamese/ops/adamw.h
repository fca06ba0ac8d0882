// One AdamW step with decoupled weight decay (Loshchilov & Hutter 2019), in place, over all parameters in one pass:
//   g <- clip * g;  p <- (1 - lr * decay) p;  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
// A function of C++ and no op of the dispatcher: it changes its arguments and nothing flows back through it, so a
// functional schema would copy every parameter and autograd has nothing to record. (In Python there is torch.optim.)
// The four tensors of a parameter have one shape, type and device; how they lie in memory does not matter.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct AdamWArguments {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double clip_scale = 1;
  int64_t applied_steps = 1;  // t, this step included
};

struct AdamWTensors {
  at::Tensor gradient;  // undefined: the parameter was no part of this step and stays
  at::Tensor parameter;
  at::Tensor first_moment;
  at::Tensor second_moment;
  double weight_decay = 0;
  double lr_scale = 1;  // multiplies lr, for the decay too
};

void adamw_step(const AdamWArguments& arguments, const std::vector<AdamWTensors>& list);

namespace plain {

void adamw_step(const AdamWArguments& arguments, const std::vector<AdamWTensors>& list);

}  // namespace plain

}  // namespace siamese::ops

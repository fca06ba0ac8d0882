// One step of AdamW with decoupled decay (Loshchilov and Hutter, arXiv 1711.05101), as torch.optim.AdamW does it:
//   g = clip_scale * g
//   p = p * (1 - lr * weight_decay)
//   m = beta1 * m + (1 - beta1) * g           v = beta2 * v + (1 - beta2) * g^2
//   p = p - lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
// g (only read), p, m, v: flat arrays. An element's result does not depend on the range it is computed in.
#pragma once

#include <cstdint>

namespace siamese::kernels {

// Doubles, because 1 - beta2 of a float beta2 would already be off in the fifth digit.
struct AdamWStep {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double bias1 = 1;       // 1 - beta1^t at step t = 1, 2, ...
  double bias2 = 1;       // 1 - beta2^t
  double clip_scale = 1;  // what the gradient is multiplied with, from the clipping of its norm
};

// Updates p, m and v in place for the elements [begin, end).
void adamw_update(const AdamWStep& step, const float* g, float* p, float* m, float* v, int64_t begin, int64_t end);

}  // namespace siamese::kernels

// AdamW in a plain double loop: what siamese/kernels/adamw.h must compute, to float rounding.
#pragma once

#include <cmath>
#include <cstdint>

#include "siamese/kernels/adamw.h"

namespace siamese::kernels::reference {

inline void adamw_update(const AdamWStep& step, const double* g, double* p, double* m, double* v, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double grad = step.clip_scale * g[i];
    p[i] *= 1 - step.lr * step.weight_decay;
    m[i] = step.beta1 * m[i] + (1 - step.beta1) * grad;
    v[i] = step.beta2 * v[i] + (1 - step.beta2) * grad * grad;
    p[i] -= step.lr / step.bias1 * m[i] / (std::sqrt(v[i]) / std::sqrt(step.bias2) + step.eps);
  }
}

}  // namespace siamese::kernels::reference

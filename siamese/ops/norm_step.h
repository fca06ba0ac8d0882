// A norm as one step of a fused pass over rows (ops/junction.h, ops/stream_mix.h), or as an op of its own.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct NormStep {
  bool present = false;
  bool layer = false;  // LayerNorm, else RMSNorm
  at::Tensor gain;     // undefined: 1
  at::Tensor bias;     // undefined: 0
  double eps = 0;
};

// N(x); without the norm x itself.
at::Tensor apply(const NormStep& norm, const at::Tensor& x);

}  // namespace siamese::ops

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
  // Of an element-wise stand-in for a norm (ops/pointwise_norm.h): DyT, or with `erf` Derf. It has no statistics that a
  // pass over rows could share, so it is an op of its own: the passes take it apart.
  at::Tensor alpha = {};  // [1]; undefined: a norm
  at::Tensor shift = {};  // [1]; undefined: 0
  bool erf = false;

  bool pointwise() const { return present && alpha.defined(); }
};

// N(x); without the norm x itself.
at::Tensor apply(const NormStep& norm, const at::Tensor& x);

}  // namespace siamese::ops

// A norm over the last dimension with its own gain and, unless it is RMSNorm, with `bias` a shift b; or one of its
// element-wise stand-ins, which have no statistics but learn one number alpha, and derf a second:
//   rms     y = g x / sqrt(mean(x^2) + eps)
//   layer   y = g (x - mean(x)) / sqrt(var(x) + eps) + b
//   dyt     y = g tanh(alpha x) + b               (Dynamic Tanh, arXiv 2503.10622)
//   derf    y = g erf(alpha x + shift) + b        (Derf, arXiv 2512.10938)
// Start: g 1, b 0, shift 0, alpha as the spec says.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"
#include "siamese/nn/parameters.h"
#include "siamese/ops/norm_step.h"

namespace siamese::nn {

enum class NormKind { rms, layer, dyt, derf };

struct NormSpec {
  NormKind kind = NormKind::rms;
  double eps = 1e-5;
  bool bias = false;   // not RMSNorm
  bool affine = true;  // false: no gain and no bias; what dyt and derf learn beside them stays
  double alpha = 0.5;  // dyt and derf: at the start

  bool pointwise() const { return kind == NormKind::dyt || kind == NormKind::derf; }
  // For what needs a norm that takes out the size of its input: RMSNorm in the place of an element-wise kind.
  NormSpec with_statistics() const {
    NormSpec spec = *this;
    if (pointwise()) spec.kind = NormKind::rms;
    return spec;
  }
};

class Norm {
 public:
  Norm() = default;  // the identity, until assigned
  Norm(const Scope& scope, int64_t width, const NormSpec& spec);

  at::Tensor operator()(const at::Tensor& x) const;
  // The same norm as a step of a junction's fused pass.
  ops::NormStep step() const;
  const Slot& gain() const { return gain_; }  // undefined without one
  const Slot& bias() const { return bias_; }

 private:
  bool identity_ = true;
  NormSpec spec_;
  Slot gain_;
  Slot bias_;
  Slot alpha_;  // [1], of dyt and derf
  Slot shift_;  // [1], of derf
};

}  // namespace siamese::nn

template <>
struct siamese::EnumText<siamese::nn::NormKind> {
  static constexpr EnumNames<nn::NormKind, 4> names{{{nn::NormKind::rms, "rms"},
                                                     {nn::NormKind::layer, "layer"},
                                                     {nn::NormKind::dyt, "dyt"},
                                                     {nn::NormKind::derf, "derf"}}};
};

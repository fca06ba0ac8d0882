// A norm with its own gain (and, for LayerNorm with bias, shift) over the last dimension.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"
#include "siamese/nn/parameters.h"
#include "siamese/ops/norm_step.h"

namespace siamese::nn {

enum class NormKind { rms, layer };

struct NormSpec {
  NormKind kind = NormKind::rms;
  double eps = 1e-5;
  bool bias = false;   // LayerNorm only
  bool affine = true;  // false: no gain and no shift
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
};

}  // namespace siamese::nn

template <>
struct siamese::EnumText<siamese::nn::NormKind> {
  static constexpr EnumNames<nn::NormKind, 2> names{{{nn::NormKind::rms, "rms"}, {nn::NormKind::layer, "layer"}}};
};

#include "siamese/nn/norm.h"

#include <ATen/ATen.h>

#include "siamese/ops/norm.h"

namespace siamese::nn {

Norm::Norm(const Scope& scope, int64_t width, const NormSpec& spec) : identity_(false), spec_(spec) {
  if (spec.pointwise()) alpha_ = scope.add("alpha", ParameterKind::scalar, {1}, {.constant = spec.alpha});
  if (spec.kind == NormKind::derf) shift_ = scope.add("shift", ParameterKind::scalar, {1}, Init::zeros());
  if (!spec.affine) return;
  gain_ = scope.add("weight", ParameterKind::norm, {width}, Init::ones());
  if (spec.kind != NormKind::rms && spec.bias) bias_ = scope.add("bias", ParameterKind::norm, {width}, Init::zeros());
}

at::Tensor Norm::operator()(const at::Tensor& x) const { return ops::apply(step(), x); }

ops::NormStep Norm::step() const {
  return {!identity_,     spec_.kind == NormKind::layer, gain_.value(), bias_.value(), spec_.eps, alpha_.value(),
          shift_.value(), spec_.kind == NormKind::derf};
}

}  // namespace siamese::nn

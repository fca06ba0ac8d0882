#include "siamese/nn/linear.h"

#include <utility>

#include "siamese/ops/linear.h"
#include "siamese/ops/operand.h"

namespace siamese::nn {

Linear::Linear(const Scope& scope, int64_t in, int64_t out, bool bias, const Init& init)
    : Linear(scope, in, out, bias, init, {out}) {}

Linear::Linear(const Scope& scope, int64_t in, int64_t out, bool bias, const Init& init, std::vector<int64_t> matrices)
    : weight_(scope.add("weight", ParameterKind::linear, {out, in}, init, std::move(matrices))) {
  if (bias) bias_ = scope.add("bias", ParameterKind::bias, {out}, Init::zeros());
}

at::Tensor Linear::operator()(const at::Tensor& x) const { return ops::linear(x, weight_.value(), bias_.value()); }

at::Tensor Linear::rounded(const at::Tensor& x) const { return ops::from_operand((*this)(ops::to_operand(x))); }

}  // namespace siamese::nn

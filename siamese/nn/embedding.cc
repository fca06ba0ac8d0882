#include "siamese/nn/embedding.h"

#include "siamese/ops/embedding.h"

namespace siamese::nn {

Embedding::Embedding(const Scope& scope, int64_t rows, int64_t width, const Init& init)
    : weight_(scope.add("weight", ParameterKind::embedding, {rows, width}, init)) {}

at::Tensor Embedding::operator()(const at::Tensor& indices) const { return ops::embedding(weight_.value(), indices); }

}  // namespace siamese::nn

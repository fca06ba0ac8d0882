// A table of vectors: [rows, width]; indices [...] -> [..., width].
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/nn/parameters.h"

namespace siamese::nn {

class Embedding {
 public:
  Embedding() = default;
  Embedding(const Scope& scope, int64_t rows, int64_t width, const Init& init);

  at::Tensor operator()(const at::Tensor& indices) const;
  const Slot& weight() const { return weight_; }

 private:
  Slot weight_;
};

}  // namespace siamese::nn

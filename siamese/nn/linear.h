// y = x W^T (+ b); W: [out, in].
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/parameters.h"

namespace siamese::nn {

class Linear {
 public:
  Linear() = default;
  // One matrix between two hidden states; the second: several, one below the other, or none (Parameter::matrices).
  Linear(const Scope& scope, int64_t in, int64_t out, bool bias, const Init& init);
  Linear(const Scope& scope, int64_t in, int64_t out, bool bias, const Init& init, std::vector<int64_t> matrices);

  at::Tensor operator()(const at::Tensor& x) const;
  // From and to floats, with operands of the run's precision (ops/operand.h).
  at::Tensor rounded(const at::Tensor& x) const;
  const Slot& weight() const { return weight_; }
  const Slot& bias() const { return bias_; }  // undefined without one

 private:
  Slot weight_;
  Slot bias_;
};

}  // namespace siamese::nn

#include "siamese/nn/rotary.h"

#include <ATen/ATen.h>

namespace siamese::nn {

Rotary::Rotary(int64_t positions, int64_t head_dim, double theta, const at::TensorOptions& options) {
  const auto exact = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, head_dim, 2, exact) / static_cast<double>(head_dim);
  const at::Tensor frequencies = at::pow(at::scalar_tensor(theta, exact), -exponents);
  const at::Tensor angles = at::outer(at::arange(positions, exact), frequencies).unsqueeze(1);
  tables_ = {angles.cos().to(options), angles.sin().to(options)};
}

RotaryTables Rotary::at(int64_t begin, int64_t tokens) const {
  return {tables_.cos.narrow(0, begin, tokens), tables_.sin.narrow(0, begin, tokens)};
}

}  // namespace siamese::nn

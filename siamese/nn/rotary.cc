#include "siamese/nn/rotary.h"

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"

namespace siamese::nn {

Rotary::Rotary(int64_t positions, int64_t head_dim, double theta, const at::TensorOptions& options) {
  expect_that(head_dim > 0 && head_dim % 2 == 0, "rotary head_dim", "an even number from 2", head_dim);
  const auto exact = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, head_dim, 2, exact) / static_cast<double>(head_dim);
  const at::Tensor frequencies = at::pow(at::scalar_tensor(theta, exact), -exponents);
  const at::Tensor angles = at::outer(at::arange(positions, exact), frequencies).unsqueeze(1);
  exact_ = {angles.cos(), angles.sin()};
  tables_ = {exact_.cos.to(options), exact_.sin.to(options)};
}

RotaryTables Rotary::at(int64_t begin, int64_t tokens, const at::TensorOptions& options) const {
  expect_that(exact_.cos.defined() && begin >= 0 && tokens >= 0 && begin + tokens <= exact_.cos.size(0),
              "rotary positions", "at most " + std::to_string(exact_.cos.defined() ? exact_.cos.size(0) : 0),
              begin + tokens);
  const bool as_built = tables_.cos.dtype() == options.dtype() && tables_.cos.device() == options.device();
  const RotaryTables& from = as_built ? tables_ : exact_;
  const auto part = [&](const at::Tensor& table) { return table.narrow(0, begin, tokens).to(options); };
  return {part(from.cos), part(from.sin)};
}

}  // namespace siamese::nn

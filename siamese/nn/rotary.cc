#include "siamese/nn/rotary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"

namespace siamese::nn {

Rotary::Rotary(int64_t positions, int64_t head_dim, double theta, const at::TensorOptions& options,
               const RopeScaling& scaling)
    : magnitude_(rotary_magnitude(scaling)) {
  expect_that(head_dim > 0 && head_dim % 2 == 0, "rotary head_dim", "an even number from 2", head_dim);
  const auto exact = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, head_dim, 2, exact) / static_cast<double>(head_dim);
  frequencies_ = scaling.kind == RopeScalingKind::none
                     ? at::pow(at::scalar_tensor(theta, exact), -exponents)
                     : at::tensor(rotary_frequencies(head_dim, theta, scaling), exact);
  const at::Tensor angles = at::outer(at::arange(positions, exact), frequencies_).unsqueeze(1);
  exact_ = {angles.cos() * magnitude_, angles.sin() * magnitude_};
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

RotaryTables Rotary::at_each(at::IntArrayRef begins, int64_t tokens, const at::TensorOptions& options) const {
  expect_that(frequencies_.defined() && tokens >= 0, "rotary tokens", "0 or more of a table that was made", tokens);
  const int64_t half = frequencies_.size(0);
  const std::vector<int64_t> sizes = {static_cast<int64_t>(begins.size()), tokens, 1, half};
  const RotaryTables tables{at::empty(sizes, exact_.cos.options()), at::empty(sizes, exact_.cos.options())};
  double* cos = tables.cos.mutable_data_ptr<double>();
  double* sin = tables.sin.mutable_data_ptr<double>();
  const double* const frequencies = frequencies_.const_data_ptr<double>();
  for (const int64_t begin : begins) {
    expect_that(begin >= 0, "rotary positions", "0 or more", begin);
    for (int64_t position = begin; position < begin + tokens; ++position, cos += half, sin += half) {
      if (position < exact_.cos.size(0)) {
        std::copy_n(exact_.cos.const_data_ptr<double>() + position * half, half, cos);
        std::copy_n(exact_.sin.const_data_ptr<double>() + position * half, half, sin);
        continue;
      }
      for (int64_t i = 0; i < half; ++i) {
        cos[i] = magnitude_ * std::cos(static_cast<double>(position) * frequencies[i]);
        sin[i] = magnitude_ * std::sin(static_cast<double>(position) * frequencies[i]);
      }
    }
  }
  return {tables.cos.to(options), tables.sin.to(options)};
}

}  // namespace siamese::nn

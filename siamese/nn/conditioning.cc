#include "siamese/nn/conditioning.h"

#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/nn/expect.h"
#include "siamese/ops/activation.h"

namespace siamese::nn {
namespace {

// 10000^(-i / count) for i < count.
at::Tensor frequencies_of(int64_t count) {
  const at::Tensor exponents = at::arange(count, at::kDouble) / static_cast<double>(count);
  return at::pow(at::scalar_tensor(10000.0, at::kDouble), -exponents);
}

Init normal_002() { return Init::normal(0.02, 0); }

}  // namespace

at::Tensor timestep_features(const at::Tensor& t, int64_t width, at::ScalarType dtype) {
  expect_shape("timesteps", t, {-1});
  expect_that(width > 0 && width % 2 == 0, "width of the timestep features", "an even number from 2", width);
  const at::Tensor angles = at::outer(t.to(at::kDouble), frequencies_of(width / 2).to(t.device()));
  return at::cat({angles.cos(), angles.sin()}, 1).to(dtype);
}

at::Tensor sincos_positions(int64_t width, int64_t grid, const at::TensorOptions& options) {
  if (width <= 0 || width % 4 != 0) {
    throw UsageError("model width: positions by sines and cosines need a multiple of 4, got " + std::to_string(width));
  }
  expect_that(grid > 0, "grid", "1 or more", grid);
  const at::Tensor angles = at::outer(at::arange(grid, at::kDouble), frequencies_of(width / 4));
  const at::Tensor line = at::cat({angles.sin(), angles.cos()}, 1);  // [grid, width / 2]
  const std::vector<int64_t> shape = {grid, grid, width / 2};        // row, column
  const at::Tensor columns = line.unsqueeze(0).expand(shape);
  const at::Tensor rows = line.unsqueeze(1).expand(shape);
  return at::cat({columns, rows}, 2).reshape({grid * grid, width}).to(options);
}

TimestepEmbedding::TimestepEmbedding(const Scope& scope, int64_t width, int64_t frequencies)
    : frequencies_(frequencies),
      in_(scope.child("in"), frequencies, width, /*bias=*/true, normal_002(), /*matrices=*/{}),
      out_(scope.child("out"), width, width, /*bias=*/true, normal_002()) {}

at::Tensor TimestepEmbedding::operator()(const at::Tensor& t) const {
  const at::Tensor& weight = in_.weight().value();
  return out_(ops::silu(in_(timestep_features(t, frequencies_, weight.scalar_type()).to(weight.device()))));
}

}  // namespace siamese::nn

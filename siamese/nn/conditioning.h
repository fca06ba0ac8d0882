// What tells a diffusion Transformer (Peebles and Xie, arXiv 2212.09748) the step and the place.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "siamese/nn/linear.h"
#include "siamese/nn/parameters.h"

namespace siamese::nn {

// [batch, width] of t [batch], width even: cos(t f_i) for i < width / 2, then sin(t f_i), f_i = 10000^(-2i / width).
// Computed in double and rounded once, on the device of t.
at::Tensor timestep_features(const at::Tensor& t, int64_t width, at::ScalarType dtype);

// The fixed table of a grid * grid image, row after row: [grid * grid, width], the first half of the width for the
// column p, the second for the row p, each sin(p w_i) then cos(p w_i), w_i = 10000^(-4i / width). UsageError when 4
// does not divide the width.
at::Tensor sincos_positions(int64_t width, int64_t grid, const at::TensorOptions& options);

// out(silu(in(timestep_features(t)))): [batch, width].
class TimestepEmbedding {
 public:
  TimestepEmbedding() = default;
  TimestepEmbedding(const Scope& scope, int64_t width, int64_t frequencies = 256);

  at::Tensor operator()(const at::Tensor& t) const;

 private:
  int64_t frequencies_ = 0;
  Linear in_;
  Linear out_;
};

}  // namespace siamese::nn

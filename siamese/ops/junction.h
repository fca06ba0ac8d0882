// What lies between two branches, in one pass over memory: the pending branch added to one or two streams, their norms,
// the merge, and the norm of the branch input. With z the branch:
//   b = gate R(z)                             branch_norm; absent: gate z
//   U = x + x_branch b;   V = y_skip y + y_branch b
//   X = P(U)                                  x_norm; absent: U
//   m = x_scale X + Q(V)                      y_norm; absent: V. One stream (x undefined): m without its first term
//   input = input_scale I(m)                  input_norm; absent: m
// Which scheme is which: kernels/junction.h. branch, x, y: [..., cols]; gains, biases and x_scale: [cols]; gate:
// [samples, cols], where the samples are y's first dimension. Beside streams of float32 the branch may be bfloat16, and
// the input is with `half_input` (ops/operand.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/norm_step.h"

namespace siamese::ops {

struct Junction {
  at::Tensor branch;  // undefined: nothing is pending
  at::Tensor x;       // undefined: one stream
  at::Tensor y;
  double x_branch = 0;
  double y_branch = 0;
  double y_skip = 1;
  double input_scale = 1;
  bool half_input = false;
  at::Tensor x_scale;  // undefined: 1
  at::Tensor gate;     // undefined: 1
  NormStep branch_norm;
  NormStep x_norm;
  NormStep y_norm;
  NormStep input_norm;
};

struct JunctionResult {
  at::Tensor x;      // X; undefined for one stream
  at::Tensor y;      // V
  at::Tensor input;  // V itself when nothing stands between and it is not rounded
  at::Tensor x_sum;  // U, to look at: no gradient flows through it
};

JunctionResult junction(const Junction& junction);

namespace plain {

JunctionResult junction(const Junction& junction);

}  // namespace plain

}  // namespace siamese::ops

// The kernel's pass of stream_attend over rows, both ways (kernels/stream_attend.h, which has the mathematics of
// backward too).
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/ops/norm_step.h"
#include "siamese/ops/one_thread.h"

namespace siamese::ops::attend_pass {

// It owns dense tensors of float32, the caller's own where they are dense; the kernel's structs point into them while
// one of the functions below runs.
struct AttendPass {
  AttendPass(at::TensorList streams, const at::Tensor& query, double eps, const NormStep& norm,
             const at::Tensor& statistics);

  Tensors streams;
  at::Tensor query;
  double eps;
  NormStep norm;
  at::Tensor statistics;  // [rows..., statistics of the streams and of the norm]
};

struct AttendOutputs {
  at::Tensor input;
  at::Tensor sum;  // of the last stream and the branch; without elements where there is none
};

// Makes the outputs and writes the statistics.
AttendOutputs forward_rows(const AttendPass& pass, const at::Tensor& branch, bool half_input);

struct AttendGradients {
  Tensors streams;
  at::Tensor query, gain, bias;
};

struct AttendWanted {
  bool streams, query, gain, bias;
};

// The pass's last stream is the sum. d_input may be undefined or bfloat16, and each of `through`, or all, absent. What
// is not wanted or not there comes back without elements.
AttendGradients backward_rows(const AttendPass& pass, const at::Tensor& d_input, at::TensorList through,
                              const AttendWanted& wanted);

}  // namespace siamese::ops::attend_pass

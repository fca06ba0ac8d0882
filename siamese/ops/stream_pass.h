// What stream_mix (a write) and stream_read (a read) share: checks, and the kernel's pass over rows both ways
// (kernels/stream_mix.h, which has the mathematics of backward too).
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/norm_step.h"
#include "siamese/ops/one_thread.h"

namespace siamese::ops::stream_pass {

// For the plain expressions. Coefficients for all rows have `dims` dimensions. These become those of each row of
// `stream`, others are so already.
at::Tensor for_rows_of(const at::Tensor& stream, const at::Tensor& coefficients, int64_t dims);

// The first stream, undefined where there is none.
const at::Tensor& first_of(at::TensorList streams);

// The streams are of one shape.
void check_streams(const Arguments& arguments, at::TensorList streams);

// Of coefficients that have the sizes `last` for all rows, or for each row of `stream`.
c10::SymDimVector coefficient_shape(const at::Tensor& stream, bool each_row, c10::SymIntArrayRef last);

// A gradient in a list that is not there has no elements. (A list of optional tensors would be invisible to LibTorch's
// check for second derivatives.)
bool is_absent(const at::Tensor& gradient);
void check_gradients(const Arguments& arguments, const char* name, at::TensorList gradients, size_t count,
                     const at::Tensor& like);
Tensors with_absent(const Tensors& gradients, const at::Tensor& like);

// Whether the kernel takes so many.
bool has_kernel(const char* op, at::TensorList streams, int64_t outputs);

// One pass. It owns dense tensors, the caller's own where they are dense; the kernel's structs point into them while
// one of the functions below runs.
struct StreamPass {
  Tensors streams;
  at::Tensor matrix;  // M, or m
  int64_t outputs = 1;
  bool each_row = false;
  at::Tensor branch;  // a write
  at::Tensor branch_weights;
  NormStep norm;            // a read
  at::Tensor statistics;    // [mean of a LayerNorm and 1 / deviation, rows...], with a norm
  bool half_input = false;  // a read's: rounded to bfloat16
};

// Makes the outputs and writes the statistics.
Tensors forward_rows(const StreamPass& pass);

struct StreamPassGradients {
  Tensors streams;
  at::Tensor matrix;
  at::Tensor branch;
  at::Tensor branch_weights;
  at::Tensor gain;
  at::Tensor bias;
};

// That of a read's input may be bfloat16. d_outputs and through (what else comes back to each stream; none at all, or
// one for each) may be absent.
StreamPassGradients backward_rows(const StreamPass& pass, at::TensorList d_outputs, at::TensorList through);

}  // namespace siamese::ops::stream_pass

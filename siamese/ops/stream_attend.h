// What Attention Residuals do with their streams between two branches, in one pass over memory: each row attends to the
// same row of every stream.
//   V_last <- V_last + branch                                  where a branch waits
//   s_j = <query, V_j> / sqrt( mean(V_j^2) + eps );   a = softmax over the streams of s
//   input = N( sum_j a_j V_j )
// With half_input the input is bfloat16, rounded once, and so is what comes back to it (ops/operand.h).
// streams V_j and branch: [..., cols], any number of streams; query: [cols]. Statistics, weights and sums are float32
// at least. Backward keeps the streams, their scores and their scales, and computes the rest again.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/ops/norm_step.h"

namespace siamese::ops {

struct StreamAttended {
  at::Tensor input;
  // The streams, the branch added, to go on with: what comes back to them is added in the pass that attends backward.
  // The op siamese::stream_attend gives the input and the last one's sum alone: an op may not return what it was given.
  std::vector<at::Tensor> streams;
};

// branch undefined: none.
StreamAttended stream_attend(const std::vector<at::Tensor>& streams, const at::Tensor& branch, const at::Tensor& query,
                             double eps, const NormStep& norm, bool half_input = false);

namespace plain {

StreamAttended stream_attend(const std::vector<at::Tensor>& streams, const at::Tensor& branch, const at::Tensor& query,
                             double eps, const NormStep& norm);

}  // namespace plain

}  // namespace siamese::ops

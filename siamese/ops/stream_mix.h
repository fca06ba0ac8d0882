// What hyper-connections do with their streams between two branches, each in one pass over memory.
//   stream_mix    out_j = sum_i M_ji s_i + b_j z          the write: n streams and the branch z give n streams
//   stream_read   input = N( sum_i m_i s_i )              the read of a branch input, with its norm
// With half_input the input is bfloat16, rounded once, and so is what comes back to it (ops/operand.h).
// streams s_i and z: [..., cols]. M: [..., outputs, n], b: [..., outputs] and m: [..., n] for each row, or [outputs,
// n], [outputs] and [n] for all rows; the gradient of the latter is a sum over rows in a fixed order. The kernel takes
// up to four streams; more run as the plain expression.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/ops/norm_step.h"

namespace siamese::ops {

std::vector<at::Tensor> stream_mix(const std::vector<at::Tensor>& streams, const at::Tensor& matrix,
                                   const at::Tensor& branch, const at::Tensor& branch_weights);

struct StreamRead {
  at::Tensor input;
  // The streams themselves, to go on with: what comes back to them is added in the pass that reads backward. The op
  // siamese::stream_read gives the input alone: an op may not return what it was given.
  std::vector<at::Tensor> streams;
};

StreamRead stream_read(const std::vector<at::Tensor>& streams, const at::Tensor& weights, const NormStep& norm,
                       bool half_input = false);

namespace plain {

std::vector<at::Tensor> stream_mix(const std::vector<at::Tensor>& streams, const at::Tensor& matrix,
                                   const at::Tensor& branch, const at::Tensor& branch_weights);
StreamRead stream_read(const std::vector<at::Tensor>& streams, const at::Tensor& weights, const NormStep& norm);

}  // namespace plain

}  // namespace siamese::ops

// What lies between two branches, one row at a time, in one pass over memory: the pending branch added to one or two
// streams, their norms, the merge, and the norm of the branch input. With z the branch, all of width `cols`:
//   b = gate R(z)                             branch_norm; absent: gate z
//   U = x + x_branch b;   V = y_skip y + y_branch b
//   X = P(U);   Q(V)                          x_norm, y_norm; absent: the sum itself
//   m = x_scale X + Q(V)                      one stream (x null): m = Q(V)
//   input = input_scale I(m)                  input_norm; absent: m
// A norm is RMSNorm or LayerNorm, the same kind for all of a junction: N(v) = (v - mean) rstd gain + bias, mean 0 for
// RMSNorm, which has no bias. Covers pre, lns, peri, olmo2 (one stream), post, deepnorm (y_skip = alpha, y_branch = 1;
// `input` is the new stream), siamese and both sites of siamese(x=hybrid). Backward recomputes everything from U, V
// (and z, when R or a gate is there) and the rows' statistics: nothing else is saved. All arrays are dense [rows, cols]
// and start at row 0, whatever the range; statistics are [rows], gains [cols]. A row's result does not depend on the
// range it is computed in. The branch, the branch input and their gradients are of type T, floats or bfloat16; streams,
// gains and all that is computed are floats. Statistics are summed in double; the sums of backward in float, lane by
// lane.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"
#include "siamese/kernels/row_norm.h"

namespace siamese::kernels {

struct Junction {
  bool layer = false;  // LayerNorm, else RMSNorm
  int64_t cols = 0;
  float x_branch = 0;
  float y_branch = 0;
  float y_skip = 1;
  float input_scale = 1;
  const float* x_scale = nullptr;  // [cols]; null: 1
  const float* gate = nullptr;     // [cols], of every row of the range; null: 1
  bool past_cache = false;         // streams and their gradients are too large to be in a cache when next read
  RowNorm branch_norm;
  RowNorm x_norm;
  RowNorm y_norm;
  RowNorm input_norm;
};

inline constexpr int64_t kJunctionScratchRows = 4;

// Null where something is absent. With a branch (or y_skip != 1) the sums are written; without, they are x and y.
template <class T>
struct JunctionRowsOf {
  const T* branch = nullptr;
  const float* x = nullptr;
  const float* y = nullptr;
  float* x_sum = nullptr;    // U
  float* y_sum = nullptr;    // V
  float* x_out = nullptr;    // X, with x_norm
  T* input = nullptr;        // null: not wanted (olmo2 reads V itself)
  float* scratch = nullptr;  // kJunctionScratchRows * cols floats of this thread's own
};
using JunctionRows = JunctionRowsOf<float>;

void junction_forward(const Junction& junction, const JunctionRows& rows, int64_t row_begin, int64_t row_end);
void junction_forward(const Junction& junction, const JunctionRowsOf<Bfloat16>& rows, int64_t row_begin,
                      int64_t row_end);

template <class T>
struct JunctionGradientsOf {
  // What forward saw or wrote: z only with branch_norm or d_gate; U and V are x and y when nothing was added.
  const T* branch = nullptr;
  const float* x_sum = nullptr;
  const float* y_sum = nullptr;
  // What comes back; null: 0. d_x is that of X (of U without x_norm).
  const float* d_x_out = nullptr;
  const float* d_y_sum = nullptr;
  const T* d_input = nullptr;
  // Overwritten; null: not wanted.
  float* d_x = nullptr;  // none of d_x, d_y and d_branch may be one of the inputs
  float* d_y = nullptr;
  T* d_branch = nullptr;
  // ADDED to, row after row.
  float* d_x_scale = nullptr;
  float* d_gate = nullptr;  // only with d_branch
  RowNormGradient branch_norm;
  RowNormGradient x_norm;
  RowNormGradient y_norm;
  RowNormGradient input_norm;
  float* scratch = nullptr;  // kJunctionScratchRows * cols floats of this thread's own
};
using JunctionGradients = JunctionGradientsOf<float>;

void junction_backward(const Junction& junction, const JunctionGradients& gradients, int64_t row_begin,
                       int64_t row_end);
void junction_backward(const Junction& junction, const JunctionGradientsOf<Bfloat16>& gradients, int64_t row_begin,
                       int64_t row_end);

}  // namespace siamese::kernels

// Streams mixed with one another and with a branch, one row at a time. With streams s_i and the branch z, all of width
// `cols`:
//   out_j = sum_i M_ji s_i + b_j z
// and, where there is one output only (the read of a branch input), its norm on the same row: out = N( sum_i M_i s_i ).
// Backward, with D_j the gradient of out_j (before the norm) and T_i what else comes back to the stream s_i:
//   ds_i = T_i + sum_j M_ji D_j;   dz = sum_j b_j D_j;   dM_ji = <D_j, s_i>;   db_j = <D_j, z>
// M and b are the same for all rows, or each row has its own. All arrays of rows are dense [rows, cols] and start at
// row 0, whatever the range. A row's result does not depend on the range it is computed in. Statistics and the dot
// products are summed in double.
#pragma once

#include <array>
#include <cstdint>

#include "siamese/kernels/bfloat16.h"
#include "siamese/kernels/row_norm.h"

namespace siamese::kernels {

inline constexpr int kMaxMixedStreams = 4;

template <class T>
using PerStream = std::array<T*, kMaxMixedStreams>;

struct StreamMix {
  int64_t cols = 0;
  int streams = 0;                        // 1 to kMaxMixedStreams
  int outputs = 0;                        // likewise
  bool each_row = false;                  // M and b have a row for each row, else one for all
  const float* matrix = nullptr;          // M: [rows or 1, outputs, streams]
  const float* branch_weights = nullptr;  // b: [rows or 1, outputs]; null: no branch
  bool layer = false;                     // the norm is LayerNorm, else RMSNorm
  RowNorm norm;                           // for one output
};

struct StreamMixRows {
  PerStream<const float> streams{};
  const float* branch = nullptr;
  PerStream<float> outputs{};
  // The one output as bfloat16 in place of outputs[0]: rounded once, after the norm.
  Bfloat16* half_output = nullptr;
  float* scratch = nullptr;  // cols floats of this thread's own, with half_output
};

// Overwrites the outputs and the norm's statistics.
void stream_mix_forward(const StreamMix& mix, const StreamMixRows& rows, int64_t row_begin, int64_t row_end);

struct StreamMixGradients {
  // What forward saw.
  PerStream<const float> streams{};
  const float* branch = nullptr;
  // What comes back; null: 0.
  PerStream<const float> d_outputs{};
  const Bfloat16* half_d_output = nullptr;  // in place of d_outputs[0]
  PerStream<const float> through{};         // T
  // Overwritten; null: not wanted.
  PerStream<float> d_streams{};
  float* d_branch = nullptr;
  // In the shape of M and b; OVERWRITTEN where each row has its own, ADDED to, row after row, where one serves all;
  // null: not wanted.
  float* d_matrix = nullptr;
  float* d_branch_weights = nullptr;
  RowNormGradient norm;      // ADDED to
  float* scratch = nullptr;  // kStreamMixScratchRows * cols floats of this thread's own, with a norm or half_d_output
};

inline constexpr int64_t kStreamMixScratchRows = 3;

void stream_mix_backward(const StreamMix& mix, const StreamMixGradients& gradients, int64_t row_begin, int64_t row_end);

}  // namespace siamese::kernels

// Attention over depth, one row at a time: n streams V_j, one query q for all rows, each of width `cols`.
//   V_last <- V_last + z                                       where a branch z waits
//   r_j = 1 / sqrt( mean(V_j^2) + eps );   s_j = r_j <q, V_j>;   a = softmax over j of s
//   h = sum_j a_j V_j;   input = N(h)                          N may be absent
// Backward, with D the gradient of h and T_j what else comes back to V_j:
//   e_j = a_j (u_j - sum_k a_k u_k),  u_j = <D, V_j>
//   dV_j = T_j + a_j D + e_j r_j (q - s_j r_j V_j / cols);     dz = dV_last;   dq = sum over rows and j of e_j r_j V_j
// All arrays of rows are dense [rows, cols] and start at row 0, whatever the range. A row's result does not depend on
// the range it is computed in. Statistics and dot products are summed in double.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"
#include "siamese/kernels/row_norm.h"

namespace siamese::kernels {

struct StreamAttend {
  int64_t cols = 0;
  int64_t streams = 0;           // n, at least 1
  const float* query = nullptr;  // q: [cols]
  float eps = 0;                 // of r
  bool layer = false;            // N is LayerNorm, else RMSNorm
  RowNorm norm;                  // N; its statistics lie below
  // [rows, statistics_cols()]: s and r of each stream, then of the norm mean (LayerNorm) and 1 / deviation. Written by
  // forward, read by backward.
  float* statistics = nullptr;

  int64_t statistics_cols() const { return 2 * streams + (norm.present ? (layer ? 2 : 1) : 0); }
};

struct StreamAttendRows {
  const float* const* streams = nullptr;  // V; with a branch the last one is `sum`
  const float* last = nullptr;            // V_last before the branch was added; with a branch
  const float* branch = nullptr;          // z; null: none
  float* sum = nullptr;                   // overwritten, with a branch
  float* input = nullptr;                 // overwritten
  Bfloat16* half_input = nullptr;         // in its place: rounded once
  float* scratch = nullptr;               // n + cols floats of this thread's own
};

// Overwrites the statistics too.
void stream_attend_forward(const StreamAttend& attend, const StreamAttendRows& rows, int64_t row_begin,
                           int64_t row_end);

struct StreamAttendGradients {
  const float* const* streams = nullptr;  // V, as forward used them: the last one with its branch
  // What comes back; null: 0.
  const float* d_input = nullptr;
  const Bfloat16* half_d_input = nullptr;  // in its place
  const float* const* through = nullptr;   // T, each or all
  // Overwritten; null: not wanted, each or all.
  float* const* d_streams = nullptr;
  // ADDED to, row after row; null: not wanted.
  float* d_query = nullptr;
  RowNormGradient norm;
  // Of this thread's own: 3 cols + 2 n floats and n doubles.
  float* scratch = nullptr;
  double* dots = nullptr;
};

void stream_attend_backward(const StreamAttend& attend, const StreamAttendGradients& gradients, int64_t row_begin,
                            int64_t row_end);

}  // namespace siamese::kernels

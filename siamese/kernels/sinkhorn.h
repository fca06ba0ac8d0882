// Sinkhorn-Knopp in the log domain, for many small matrices. With L the n x n logits of a row:
//   `iterations` times:  L_ij <- L_ij - log sum_i exp L_ij  (columns to sum 1),  then the same over j (rows)
//   P = exp L
// Backward goes through all rounds, computed again from the logits: for a step y = x - log sum exp x,
//   dx = dy - exp(y) sum dy
// logits, P and their gradients: [rows, n, n], dense, from row 0 whatever the range; n at most kMaxSinkhornSize. A
// row's result does not depend on the range it is computed in: each is a lane of its own.
#pragma once

#include <cstdint>

namespace siamese::kernels {

inline constexpr int64_t kMaxSinkhornSize = 16;
inline constexpr int64_t kSinkhornLanes = 16;  // rows at once, at most

// Overwrites out.
void sinkhorn_forward(const float* logits, int64_t n, int64_t iterations, float* out, int64_t row_begin,
                      int64_t row_end);

// Floats of scratch that backward needs: exp of the matrix after every step, the matrix, its gradient.
constexpr int64_t sinkhorn_scratch(int64_t n, int64_t iterations) {
  return (2 * iterations + 2) * n * n * kSinkhornLanes;
}

// Overwrites d_logits.
void sinkhorn_backward(const float* d_out, const float* logits, int64_t n, int64_t iterations, float* d_logits,
                       float* scratch, int64_t row_begin, int64_t row_end);

}  // namespace siamese::kernels

// RMSNorm over the last dimension (Zhang and Sennrich, arXiv 1910.07467).
//   rstd = 1 / sqrt(mean(x^2) + eps)          y = x * rstd * gain
//   g = dy * gain, n = x * rstd               dx = rstd * (g - n * mean(g * n))       dgain = sum over rows of dy * n
// x, y, dy, dx: [rows, cols], dense; rstd: [rows]; gain, dgain: [cols]. All arrays start at row 0, whatever the range.
// A row's result does not depend on the range it is computed in. Statistics are summed in double.
#pragma once

#include <cstdint>

namespace siamese::kernels {

// Overwrites y and rstd for the rows [row_begin, row_end). gain may be null: 1.
void rms_norm_forward(const float* x, const float* gain, float eps, float* y, float* rstd, int64_t row_begin,
                      int64_t row_end, int64_t cols);

// Overwrites dx for the rows; ADDS their share to dgain, row after row. Each may be null: not wanted.
void rms_norm_backward(const float* dy, const float* x, const float* gain, const float* rstd, float* dx, float* dgain,
                       int64_t row_begin, int64_t row_end, int64_t cols);

}  // namespace siamese::kernels

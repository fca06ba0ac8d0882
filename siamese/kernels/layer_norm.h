// LayerNorm over the last dimension (Ba et al., arXiv 1607.06450); the variance is the biased one, as in PyTorch.
//   mean = mean(x), rstd = 1 / sqrt(mean((x - mean)^2) + eps)          y = (x - mean) * rstd * gain + bias
//   g = dy * gain, n = (x - mean) * rstd     dx = rstd * (g - mean(g) - n * mean(g * n))
//   dgain = sum over rows of dy * n          dbias = sum over rows of dy
// x, y, dy, dx: [rows, cols], dense; mean, rstd: [rows]; gain, bias, dgain, dbias: [cols]. All arrays start at row 0,
// whatever the range. A row's result does not depend on the range it is computed in. Statistics are summed in double,
// the variance in a second look at the cached row, around the mean: E[x^2] - E[x]^2 would cancel.
#pragma once

#include <cstdint>

namespace siamese::kernels {

// Overwrites y, mean and rstd for the rows [row_begin, row_end). gain may be null: 1. bias may be null: 0.
void layer_norm_forward(const float* x, const float* gain, const float* bias, float eps, float* y, float* mean,
                        float* rstd, int64_t row_begin, int64_t row_end, int64_t cols);

// Overwrites dx for the rows; ADDS their share to dgain and to dbias, row after row. Each may be null: not wanted.
void layer_norm_backward(const float* dy, const float* x, const float* gain, const float* mean, const float* rstd,
                         float* dx, float* dgain, float* dbias, int64_t row_begin, int64_t row_end, int64_t cols);

}  // namespace siamese::kernels

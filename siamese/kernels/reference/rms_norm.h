// RMSNorm in plain double loops: what siamese/kernels/rms_norm.h must compute, to float rounding.
#pragma once

#include <cmath>
#include <cstdint>

namespace siamese::kernels::reference {

inline void rms_norm_forward(const double* x, const double* gain, double eps, double* y, double* rstd, int64_t rows,
                             int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (int64_t i = row * cols; i < (row + 1) * cols; ++i) squares += x[i] * x[i];
    rstd[row] = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t i = row * cols + col;
      y[i] = x[i] * rstd[row] * (gain == nullptr ? 1 : gain[col]);
    }
  }
}

// Overwrites dx; adds to dgain unless it is null.
inline void rms_norm_backward(const double* dy, const double* x, const double* gain, const double* rstd, double* dx,
                              double* dgain, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double dot = 0;  // sum of dy * gain * x * rstd
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t i = row * cols + col;
      const double normed = x[i] * rstd[row];
      dot += dy[i] * (gain == nullptr ? 1 : gain[col]) * normed;
      if (dgain != nullptr) dgain[col] += dy[i] * normed;
    }
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t i = row * cols + col;
      const double g = dy[i] * (gain == nullptr ? 1 : gain[col]);
      dx[i] = rstd[row] * (g - x[i] * rstd[row] * dot / static_cast<double>(cols));
    }
  }
}

}  // namespace siamese::kernels::reference

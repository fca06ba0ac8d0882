// LayerNorm in plain double loops: what siamese/kernels/layer_norm.h must compute, to float rounding.
#pragma once

#include <cmath>
#include <cstdint>

namespace siamese::kernels::reference {

inline void layer_norm_forward(const double* x, const double* gain, const double* bias, double eps, double* y,
                               double* mean, double* rstd, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double total = 0;
    for (int64_t i = row * cols; i < (row + 1) * cols; ++i) total += x[i];
    mean[row] = total / static_cast<double>(cols);
    double squares = 0;
    for (int64_t i = row * cols; i < (row + 1) * cols; ++i) squares += (x[i] - mean[row]) * (x[i] - mean[row]);
    rstd[row] = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t i = row * cols + col;
      y[i] = (x[i] - mean[row]) * rstd[row] * (gain == nullptr ? 1 : gain[col]) + (bias == nullptr ? 0 : bias[col]);
    }
  }
}

// Overwrites dx; adds to dgain and dbias unless they are null.
inline void layer_norm_backward(const double* dy, const double* x, const double* gain, const double* mean,
                                const double* rstd, double* dx, double* dgain, double* dbias, int64_t rows,
                                int64_t cols) {
  for (int64_t row = 0; row < rows; ++row) {
    double total = 0;  // sum of g = dy * gain
    double dot = 0;    // sum of g * (x - mean) * rstd
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t i = row * cols + col;
      const double normed = (x[i] - mean[row]) * rstd[row];
      const double g = dy[i] * (gain == nullptr ? 1 : gain[col]);
      total += g;
      dot += g * normed;
      if (dgain != nullptr) dgain[col] += dy[i] * normed;
      if (dbias != nullptr) dbias[col] += dy[i];
    }
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t i = row * cols + col;
      const double normed = (x[i] - mean[row]) * rstd[row];
      const double g = dy[i] * (gain == nullptr ? 1 : gain[col]);
      dx[i] = rstd[row] * (g - (total + normed * dot) / static_cast<double>(cols));
    }
  }
}

}  // namespace siamese::kernels::reference

// DyT and Derf in plain double loops: what siamese/kernels/pointwise_norm.h must compute, to float rounding.
#pragma once

#include <cmath>
#include <cstdint>

#include "siamese/kernels/pointwise_norm.h"

namespace siamese::kernels::reference {

inline double pointwise_value(PointwiseFunction function, double u) {
  return function == PointwiseFunction::tanh ? std::tanh(u) : std::erf(u);
}

inline double pointwise_slope(PointwiseFunction function, double u) {
  if (function == PointwiseFunction::erf) return 1.1283791670955125739 * std::exp(-u * u);  // 2 / sqrt(pi)
  const double cosh = std::cosh(u);
  return 1 / (cosh * cosh);
}

inline void pointwise_norm_forward(PointwiseFunction function, double alpha, double shift, const double* gain,
                                   const double* bias, const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows * cols; ++i) {
    const double value = pointwise_value(function, alpha * x[i] + shift);
    y[i] = value * (gain == nullptr ? 1 : gain[i % cols]) + (bias == nullptr ? 0 : bias[i % cols]);
  }
}

// Overwrites dx; adds to the sums, [cols] each.
inline void pointwise_norm_backward(PointwiseFunction function, double alpha, double shift, const double* gain,
                                    const double* dy, const double* x, double* dx, double* dgain, double* dbias,
                                    double* dalpha, double* dshift, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int64_t col = i % cols;
    const double u = alpha * x[i] + shift;
    const double g = dy[i] * (gain == nullptr ? 1 : gain[col]) * pointwise_slope(function, u);
    dx[i] = alpha * g;
    dgain[col] += dy[i] * pointwise_value(function, u);
    dbias[col] += dy[i];
    dalpha[col] += g * x[i];
    dshift[col] += g;
  }
}

}  // namespace siamese::kernels::reference

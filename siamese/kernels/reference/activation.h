// Activations in double: what siamese/kernels/activation.h must compute, to float rounding.
#pragma once

#include <cmath>

namespace siamese::kernels::reference {

inline double silu(double g) { return g / (1 + std::exp(-g)); }
inline double silu_slope(double g) {
  const double s = 1 / (1 + std::exp(-g));
  return s * (1 + g * (1 - s));
}
inline double gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
inline double gelu_slope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
inline double gelu_tanh_slope(double x) {
  const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

}  // namespace siamese::kernels::reference

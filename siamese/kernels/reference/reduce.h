// Sums in plain double loops: what siamese/kernels/reduce.h must compute, to double rounding.
#pragma once

#include <cstdint>

namespace siamese::kernels::reference {

inline double sum(const double* x, int64_t size) {
  double total = 0;
  for (int64_t i = 0; i < size; ++i) total += x[i];
  return total;
}

inline double sum_squares(const double* x, int64_t size) {
  double total = 0;
  for (int64_t i = 0; i < size; ++i) total += x[i] * x[i];
  return total;
}

}  // namespace siamese::kernels::reference

// Sums of outer products in plain double loops: what siamese/kernels/outer_products.h must compute, to float rounding.
#pragma once

#include <cstdint>

namespace siamese::kernels::reference {

// dw[n, k] += sum over m of dy[m, n] x[m, k]
inline void add_outer_products(const double* dy, const double* x, double* dw, int64_t rows, int64_t out, int64_t in) {
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < out; ++n) {
      for (int64_t k = 0; k < in; ++k) dw[n * in + k] += dy[m * out + n] * x[m * in + k];
    }
  }
}

}  // namespace siamese::kernels::reference

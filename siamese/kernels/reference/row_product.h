// A few rows times a matrix in plain double loops: what siamese/kernels/row_product.h must compute, to float rounding.
#pragma once

#include <cstdint>

namespace siamese::kernels::reference {

// y[r, o] = sum over i of x[r, i] w[o, i]; rows of w are w_stride apart.
inline void row_product(const double* x, const double* w, int64_t w_stride, double* y, int64_t rows, int64_t in,
                        int64_t out) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < in; ++i) sum += x[r * in + i] * w[o * w_stride + i];
      y[r * out + o] = sum;
    }
  }
}

}  // namespace siamese::kernels::reference

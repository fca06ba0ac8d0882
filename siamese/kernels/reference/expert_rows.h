// The passes around the products of experts in plain double loops: what siamese/kernels/expert_rows.h must compute, to
// float rounding.
#pragma once

#include <cstdint>

namespace siamese::kernels::reference {

inline void gather_rows(const double* x, const int64_t* source, const double* factors, double* packed, int64_t rows,
                        int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      packed[i * cols + c] = (factors == nullptr ? 1 : factors[i]) * x[source[i] * cols + c];
    }
  }
}

inline void combine_rows(const double* packed, const int64_t* place, const double* weights, double* y, int64_t rows,
                         int64_t choices, int64_t cols) {
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t c = 0; c < cols; ++c) {
      y[t * cols + c] = 0;
      for (int64_t r = t * choices; r < (t + 1) * choices; ++r)
        y[t * cols + c] += weights[r] * packed[place[r] * cols + c];
    }
  }
}

inline void weigh_rows(const double* a, double* b, const double* factors, double* products, int64_t rows,
                       int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    products[i] = 0;
    for (int64_t c = i * cols; c < (i + 1) * cols; ++c) {
      products[i] += a[c] * b[c];
      b[c] *= factors[i];
    }
  }
}

}  // namespace siamese::kernels::reference

// The passes over rows around the products of a mixture of experts. "Packed" rows are sorted by expert: packed row i
// is row source[i] of the input, and the r-th choice of row t lies at packed row place[t, r].
//   gather:   packed[i] = factors[i] x[source[i]]
//   combine:  y[t] = sum over r of weights[t, r] packed[place[t, r]], in the order of r
//   weigh:    products[i] = a[i] . b[i], then b[i] = factors[i] b[i]
// Arrays are dense and start at row 0, whatever the range; a row's result does not depend on the range. x, packed, y, a
// and b are floats or bfloat16.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

// Overwrites the packed rows [begin, end). factors may be null: 1.
void gather_rows(const float* x, const int64_t* source, const float* factors, float* packed, int64_t begin, int64_t end,
                 int64_t cols);
void gather_rows(const Bfloat16* x, const int64_t* source, const float* factors, Bfloat16* packed, int64_t begin,
                 int64_t end, int64_t cols);

// Overwrites the rows [begin, end) of y. place, weights: [rows, choices], choices >= 1.
void combine_rows(const float* packed, const int64_t* place, const float* weights, float* y, int64_t begin, int64_t end,
                  int64_t choices, int64_t cols);
void combine_rows(const Bfloat16* packed, const int64_t* place, const float* weights, Bfloat16* y, int64_t begin,
                  int64_t end, int64_t choices, int64_t cols);

// Overwrites products and b for the rows [begin, end). The products are summed in double.
void weigh_rows(const float* a, float* b, const float* factors, float* products, int64_t begin, int64_t end,
                int64_t cols);
void weigh_rows(const Bfloat16* a, Bfloat16* b, const float* factors, float* products, int64_t begin, int64_t end,
                int64_t cols);

}  // namespace siamese::kernels

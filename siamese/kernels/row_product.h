// A few rows times a matrix of weights, as generation needs them:
//   y[r][o] = sum over i of x[r][i] w[o][i]
// x: [rows, in], y: [rows, out], dense; w: `out` rows of `in` dense elements, `w_stride` elements apart. The weights
// are floats, or bfloat16, which are widened in registers. A weight is fetched from
// memory once for all rows; for one row nothing else costs. An element is one sum in one order: lane j of a vector adds
// the terms j, j + lanes, ..., then the lanes are added. So its bits depend on its row of x and its row of w alone, not
// on the range or on what is computed beside it.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

// Overwrites columns [out_begin, out_end) of y.
void row_product(const float* x, const float* w, int64_t w_stride, float* y, int64_t rows, int64_t in, int64_t out,
                 int64_t out_begin, int64_t out_end);
void row_product(const float* x, const Bfloat16* w, int64_t w_stride, float* y, int64_t rows, int64_t in, int64_t out,
                 int64_t out_begin, int64_t out_end);

// Columns that are computed together: ranges that begin at a multiple of them are best.
inline constexpr int64_t kRowProductColumns = 8;

}  // namespace siamese::kernels

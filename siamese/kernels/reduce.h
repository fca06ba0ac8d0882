// Sums of a flat float array, accumulated in double: gradient norms, partial sums; and of the columns of a matrix, in
// float: gradients of biases. The result depends on the range (to the last bits), so a caller that wants the same bits
// at any thread count sums the parts of a Partition (siamese/kernels/partition.h) and adds them in order.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

// The sum of x[i] for i in [begin, end).
double sum(const float* x, int64_t begin, int64_t end);

// The sum of x[i]^2 for i in [begin, end).
double sum_squares(const float* x, int64_t begin, int64_t end);

// sums[c] += the sum over rows in [row_begin, row_end) of x[row, c]. x: [rows, cols], given from its first row.
void add_column_sums(const float* x, float* sums, int64_t row_begin, int64_t row_end, int64_t cols);
void add_column_sums(const Bfloat16* x, float* sums, int64_t row_begin, int64_t row_end, int64_t cols);

}  // namespace siamese::kernels

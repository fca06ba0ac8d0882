// Sums of a flat float array, accumulated in double: gradient norms, partial sums. The result depends on the range (to
// the last bits of a double), so a caller that wants the same bits at any thread count sums the parts of a Partition
// (siamese/kernels/partition.h) and adds them in order.
#pragma once

#include <cstdint>

namespace siamese::kernels {

// The sum of x[i] for i in [begin, end).
double sum(const float* x, int64_t begin, int64_t end);

// The sum of x[i]^2 for i in [begin, end).
double sum_squares(const float* x, int64_t begin, int64_t end);

}  // namespace siamese::kernels

// The gradient of a linear layer's weight, y = x W^T, added to what is there:
//   dW[n, k] += sum over rows m of dy[m, n] x[m, k]
// dy: [rows, out], x: [rows, in], dW: [out, in], all dense. The sum runs over m in order, in blocks whose length is a
// function of `rows` alone; each block's sum is added to dW. So an element's bits depend neither on the range it is
// computed in nor on the other sizes. dy and x are floats or bfloat16, whose products are exact in a float; where the
// CPU multiplies bfloat16, two rows at a time, sums of them are in another order than elsewhere.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

// Floats of scratch for one call, whatever its range; at an address of whole cache lines it is fastest.
int64_t outer_products_scratch(int64_t rows, int64_t out, int64_t in);

// Adds to the rows [out_begin, out_end) of dw; dy, x and dw are given from their first element whatever the range.
// x is copied into the scratch once per call: few long ranges are faster than many short ones.
void add_outer_products(const float* dy, const float* x, float* dw, int64_t rows, int64_t out, int64_t in,
                        int64_t out_begin, int64_t out_end, float* scratch);
void add_outer_products(const Bfloat16* dy, const Bfloat16* x, float* dw, int64_t rows, int64_t out, int64_t in,
                        int64_t out_begin, int64_t out_end, float* scratch);

}  // namespace siamese::kernels

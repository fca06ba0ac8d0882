// The products of an expert's rows with its weights, for one range of the result on one thread:
//   times_transposed:  y[m, n] = sum over k of x[m, k] w[n, k]
//   times:             x[m, k] = sum over n of y[m, n] w[n, k]
// x: [rows, in], w: [out, in], y: [rows, out], all dense, floats or bfloat16. A library packs w for each product, which
// pays over thousands of rows; an expert has a hundred. Here w is read as it lies, once for every kExpertRows rows.
// The sum runs in order, in blocks whose length is a function of its own length alone, and is rounded to bfloat16 once.
// So an element's bits depend neither on the range it is computed in nor on the other sizes. Where the CPU multiplies
// bfloat16, two at a time, sums of them are in another order than elsewhere.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

inline constexpr int64_t kExpertRows = 256;
inline constexpr int64_t kExpertRange = 96;  // ranges of whole such units are fastest

// Floats of scratch for one call, whatever its range; at an address of whole cache lines it is fastest.
int64_t expert_times_transposed_scratch(int64_t rows, int64_t in);
int64_t expert_times_scratch(int64_t rows, int64_t out);

// Overwrites the columns [out_begin, out_end) of y. All pointers are to the first element, whatever the range. x is
// copied into the scratch once per call: few long ranges are faster than many short ones.
void expert_times_transposed(const float* x, const float* w, float* y, int64_t rows, int64_t in, int64_t out,
                             int64_t out_begin, int64_t out_end, float* scratch);
void expert_times_transposed(const Bfloat16* x, const Bfloat16* w, Bfloat16* y, int64_t rows, int64_t in, int64_t out,
                             int64_t out_begin, int64_t out_end, float* scratch);

// Overwrites the columns [in_begin, in_end) of x.
void expert_times(const float* y, const float* w, float* x, int64_t rows, int64_t out, int64_t in, int64_t in_begin,
                  int64_t in_end, float* scratch);
void expert_times(const Bfloat16* y, const Bfloat16* w, Bfloat16* x, int64_t rows, int64_t out, int64_t in,
                  int64_t in_begin, int64_t in_end, float* scratch);

}  // namespace siamese::kernels

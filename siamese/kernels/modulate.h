// Scale and shift of every token by numbers of its sample (FiLM, Perez et al., arXiv 1709.07871; adaLN in DiT).
//   y[b,t,c] = x[b,t,c] (one + scale[b,c]) + shift[b,c]
//   dx = dy (one + scale)      dscale[b,c] = sum over t of dy x      dshift[b,c] = sum over t of dy
// y and dy may be bfloat16: y is rounded once, sums stay float.
// x, y, dy, dx: [samples, tokens, cols], dense; dscale, dshift: [samples, cols], dense. scale and shift: [samples,
// cols] with dense rows at a stride of their own: parts of one wider array. All arrays start at sample 0, whatever the
// range.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

struct Modulation {
  int64_t tokens = 0;
  int64_t cols = 0;
  float one = 1;  // 0: the scale alone is the factor, a gate
  const float* scale = nullptr;
  int64_t scale_stride = 0;
  const float* shift = nullptr;  // null: none
  int64_t shift_stride = 0;
};

// Overwrites y for the tokens [row_begin, row_end), counted through the samples.
void modulate_forward(const Modulation& by, const float* x, float* y, int64_t row_begin, int64_t row_end);
void modulate_forward(const Modulation& by, const float* x, Bfloat16* y, int64_t row_begin, int64_t row_end);

// Overwrites dx, dscale and dshift (which may be null: not wanted) of one sample in the columns [col_begin, col_end).
// The sums run from the first token to the last; a column's result does not depend on the range it is computed in.
void modulate_backward(const Modulation& by, const float* dy, const float* x, float* dx, float* dscale, float* dshift,
                       int64_t sample, int64_t col_begin, int64_t col_end);
void modulate_backward(const Modulation& by, const Bfloat16* dy, const float* x, float* dx, float* dscale,
                       float* dshift, int64_t sample, int64_t col_begin, int64_t col_end);

}  // namespace siamese::kernels

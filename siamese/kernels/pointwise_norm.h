// Element-wise stand-ins for a norm, without statistics: DyT (Zhu et al., arXiv 2503.10622) with f = tanh, Derf (Chen
// et al., arXiv 2512.10938) with f = erf.
//   u = alpha x + shift         y = gain f(u) + bias
//   g = dy gain f'(u)           dx = alpha g          dalpha = sum of g x           dshift = sum of g
//                               dgain = sum over rows of dy f(u)                    dbias = sum over rows of dy
// x, y, dy, dx: [rows, cols], dense; gain, bias and the sums over rows: [cols]. All arrays start at row 0, whatever the
// range. An element's result does not depend on the range it is computed in.
#pragma once

#include <cstdint>

namespace siamese::kernels {

enum class PointwiseFunction { tanh, erf };

struct PointwiseNorm {
  PointwiseFunction function = PointwiseFunction::tanh;
  float alpha = 1;
  float shift = 0;
  const float* gain = nullptr;  // null: 1
  const float* bias = nullptr;  // null: 0
};

// Sums over rows, column by column; those of alpha and shift have to be added up over the columns. Null: not wanted.
struct PointwiseSums {
  float* gain = nullptr;
  float* bias = nullptr;
  float* alpha = nullptr;
  float* shift = nullptr;
};

// Overwrites y for the rows [row_begin, row_end).
void pointwise_norm_forward(const PointwiseNorm& norm, const float* x, float* y, int64_t row_begin, int64_t row_end,
                            int64_t cols);

// Overwrites dx for the rows, null: not wanted; ADDS their share to the sums, row after row.
void pointwise_norm_backward(const PointwiseNorm& norm, const float* dy, const float* x, float* dx,
                             const PointwiseSums& sums, int64_t row_begin, int64_t row_end, int64_t cols);

}  // namespace siamese::kernels

// The activations of the feed-forward branch, over ranges of rows. x: what the input projection returned.
//   swiglu:    x = [up | gate] of width 2 cols:  y = up * silu(gate),  silu(g) = g / (1 + exp(-g))
//   gelu:      y = x (1 + erf(x / sqrt(2))) / 2
//   gelu_tanh: y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
// Backward recomputes what it needs from x. Arrays are dense and start at row 0, whatever the range.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

enum class Activation { swiglu, gelu, gelu_tanh };

// y: [rows, cols].
void activation_forward(Activation kind, const float* x, float* y, int64_t row_begin, int64_t row_end, int64_t cols);
void activation_forward(Activation kind, const Bfloat16* x, Bfloat16* y, int64_t row_begin, int64_t row_end,
                        int64_t cols);

// Overwrites dx (shape of x), which may be x itself, and, when y is not null, y with what forward gave, to the bit; y
// may be dy.
void activation_backward(Activation kind, const float* x, const float* dy, float* dx, float* y, int64_t row_begin,
                         int64_t row_end, int64_t cols);
void activation_backward(Activation kind, const Bfloat16* x, const Bfloat16* dy, Bfloat16* dx, Bfloat16* y,
                         int64_t row_begin, int64_t row_end, int64_t cols);

}  // namespace siamese::kernels

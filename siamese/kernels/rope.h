// Rotary position embedding, half rotation, over rows of heads:
//   y = [x1 cos - x2 sin, x2 cos + x1 sin] of each head; backward is the rotation by the negative angle.
// x, y: [rows, heads, 2 half], row r at token r % tokens; cos, sin: [tokens, half]. y may be x itself.
#pragma once

#include <cstdint>

namespace siamese::kernels {

struct RopeShape {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t half = 0;
};

void rope_forward(const RopeShape& shape, const float* x, const float* cos, const float* sin, float* y,
                  int64_t row_begin, int64_t row_end);

// dx from dy.
void rope_backward(const RopeShape& shape, const float* dy, const float* cos, const float* sin, float* dx,
                   int64_t row_begin, int64_t row_end);

}  // namespace siamese::kernels

// Scale and shift by sample in plain double loops: what siamese/kernels/modulate.h must compute, to float rounding.
#pragma once

#include <cstdint>

namespace siamese::kernels::reference {

struct ModulateShape {
  int64_t samples = 0;
  int64_t tokens = 0;
  int64_t cols = 0;
};

// scale, shift: [samples, cols], dense. shift may be null: 0.
inline void modulate_forward(const ModulateShape& shape, double one, const double* x, const double* scale,
                             const double* shift, double* y) {
  for (int64_t b = 0; b < shape.samples; ++b) {
    for (int64_t t = 0; t < shape.tokens; ++t) {
      for (int64_t c = 0; c < shape.cols; ++c) {
        const int64_t i = (b * shape.tokens + t) * shape.cols + c;
        const int64_t at = b * shape.cols + c;
        y[i] = x[i] * (one + scale[at]) + (shift == nullptr ? 0 : shift[at]);
      }
    }
  }
}

// Overwrites all three gradients.
inline void modulate_backward(const ModulateShape& shape, double one, const double* dy, const double* x,
                              const double* scale, double* dx, double* dscale, double* dshift) {
  for (int64_t at = 0; at < shape.samples * shape.cols; ++at) dscale[at] = dshift[at] = 0;
  for (int64_t b = 0; b < shape.samples; ++b) {
    for (int64_t t = 0; t < shape.tokens; ++t) {
      for (int64_t c = 0; c < shape.cols; ++c) {
        const int64_t i = (b * shape.tokens + t) * shape.cols + c;
        const int64_t at = b * shape.cols + c;
        dx[i] = dy[i] * (one + scale[at]);
        dscale[at] += dy[i] * x[i];
        dshift[at] += dy[i];
      }
    }
  }
}

}  // namespace siamese::kernels::reference

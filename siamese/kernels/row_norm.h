// A norm as one step of a pass over rows: N(v) = (v - mean) rstd gain + bias, mean 0 for RMSNorm.
#pragma once

namespace siamese::kernels {

struct RowNorm {
  bool present = false;
  float eps = 0;
  const float* gain = nullptr;  // null: 1
  const float* bias = nullptr;  // null: 0
  float* mean = nullptr;        // LayerNorm only; written by forward, read by backward
  float* rstd = nullptr;
};

struct RowNormGradient {
  float* gain = nullptr;  // [cols], ADDED to; null: not wanted
  float* bias = nullptr;
};

}  // namespace siamese::kernels

// Tables of ops/rope.h for a range of positions, computed in double and rounded once.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/nn/rope_scaling.h"

namespace siamese::nn {

struct RotaryTables {
  at::Tensor cos;  // [tokens, 1, head_dim / 2], or of each sequence [batch, tokens, 1, head_dim / 2]
  at::Tensor sin;
};

class Rotary {
 public:
  Rotary() = default;
  Rotary(int64_t positions, int64_t head_dim, double theta, const at::TensorOptions& options,
         const RopeScaling& scaling = {});

  // Positions begin .. begin + tokens - 1, of this type and on this device.
  RotaryTables at(int64_t begin, int64_t tokens, const at::TensorOptions& options) const;
  // The same for sequences that begin at positions of their own, which may lie past the last: then computed here.
  RotaryTables at_each(at::IntArrayRef begins, int64_t tokens, const at::TensorOptions& options) const;

 private:
  at::Tensor frequencies_;  // [head_dim / 2], in double, on the host
  double magnitude_ = 1;    // of cos and sin
  RotaryTables exact_;      // in double, on the host
  RotaryTables tables_;     // as the model was built
};

}  // namespace siamese::nn

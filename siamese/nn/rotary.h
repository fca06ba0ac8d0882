// Tables of ops/rope.h for a range of positions, computed in double and rounded once.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::nn {

struct RotaryTables {
  at::Tensor cos;  // [tokens, 1, head_dim / 2]
  at::Tensor sin;
};

class Rotary {
 public:
  Rotary() = default;
  Rotary(int64_t positions, int64_t head_dim, double theta, const at::TensorOptions& options);

  // Positions begin .. begin + tokens - 1.
  RotaryTables at(int64_t begin, int64_t tokens) const;

 private:
  RotaryTables tables_;
};

}  // namespace siamese::nn

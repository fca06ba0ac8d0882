// The feed-forward branch, hidden width f:
//   swiglu:    W_out(silu(gate) * up), (up, gate) = halves of W_in x;   W_in: [2f, width]
//   gelu:      W_out(gelu(W_in x)), exact (erf);   gelu_tanh: the tanh approximation;   W_in: [f, width]
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/init.h"
#include "siamese/nn/linear.h"
#include "siamese/ops/activation.h"

namespace siamese::nn {

using FeedForwardKind = ops::Activation;

// The rows of the matrices in W_in: up and gate, or one.
std::vector<int64_t> input_matrices(FeedForwardKind kind, int64_t hidden);

struct FeedForwardShape {
  FeedForwardKind kind = FeedForwardKind::swiglu;
  int64_t width = 0;
  int64_t hidden = 0;
  bool bias = false;
};

class FeedForward {
 public:
  FeedForward(const Scope& scope, const FeedForwardShape& shape, const Initializer& initializer, int64_t block,
              const InitFactors& factors);

  at::Tensor operator()(const at::Tensor& x) const;

 private:
  FeedForwardKind kind_;
  Linear in_;
  Linear out_;
};

}  // namespace siamese::nn

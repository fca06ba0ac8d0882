// Where backward puts the gradient of a weight. Autograd's way is a fresh tensor that is then added to .grad: for a
// weight matrix two more passes over memory and a buffer as large as the weight. Inside `GradientsInPlace` the ops that
// own the large products (linear, feed_forward, expert_feed_forward, embedding, head_loss) add straight to a .grad that
// is there already, and return no gradient of their own.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

// For a scope that ends in backward() from a loss with gradient 1: head_loss makes its gradients in forward. Not for
// torch::autograd::grad, which would not see them.
class GradientsInPlace {
 public:
  GradientsInPlace();
  ~GradientsInPlace();
  GradientsInPlace(const GradientsInPlace&) = delete;
  GradientsInPlace& operator=(const GradientsInPlace&) = delete;
};

// Whether to add to weight.grad() instead of returning a gradient. Only where our kernels can: it must lie row-major on
// the CPU, in float32; and only in a backward that is not itself recorded, because nobody sees what is added.
bool adds_in_place(const at::Tensor& weight);

}  // namespace siamese::ops

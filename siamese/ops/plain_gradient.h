// The plain form of an op's backward: the derivative of its plain expression, as autograd makes it.
#pragma once

#include <vector>

#include "siamese/ops/one_thread.h"

namespace siamese::ops {

// For kernels that run below autograd. `gradients` are those of the expression's results; undefined: 0. Returns one for
// each input: zeros where nothing depends on it, a tensor without elements where it is not wanted or not there.
Tensors gradients_of(const Tensors& inputs, const std::vector<bool>& wanted, const Tensors& gradients,
                     const Expression& expression);

}  // namespace siamese::ops

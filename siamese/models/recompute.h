// Activation checkpointing: a segment of the forward pass keeps only its inputs and is computed again in backward.
// Gradients are the same bits as without it.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace siamese::models {

// Must be a pure function of its tensors and of parameters; it runs once forward and once more in backward.
using Segment = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

std::vector<at::Tensor> recompute(const Segment& segment, const std::vector<at::Tensor>& inputs);

}  // namespace siamese::models

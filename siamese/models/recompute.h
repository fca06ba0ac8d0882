// Activation checkpointing: a segment of the forward pass keeps only its inputs and is computed again in backward.
// Gradients are the same bits as without it.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/parameters.h"

namespace siamese::models {

// Must be a pure function of its tensors and parameters and own all it needs: it runs once forward and once more in
// backward, when the caller may be gone.
using Segment = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// The parameters whose slots a segment uses: those of the list with these indices. Backward computes with the tensors
// that the slots gave in forward.
struct SegmentParameters {
  nn::Parameters all;
  std::vector<size_t> used;
};

// Backward raises UsageError for second derivatives, and where the segment depends on a tensor with a gradient that is
// neither an input nor one of its parameters.
std::vector<at::Tensor> recompute(const Segment& segment, const std::vector<at::Tensor>& inputs,
                                  const SegmentParameters& parameters);

}  // namespace siamese::models

// Dropout (Srivastava et al. 2014): in training an element is 0 with chance p, else divided by 1 - p. Whether an
// element is dropped is a pure function of (key, position of its sample in the run, its number within the sample), so
// that it does not depend on micro-batches, threads, an interruption or recomputation. Drawn on the host, where the
// counter-based generator lives, and moved to where it is used.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace siamese::nn {

struct Dropout {
  double chance = 0;
  uint64_t key = 0;             // of the run and of the place in the model
  uint64_t first_position = 0;  // of the batch's first sample

  bool acts() const { return chance > 0; }
  // bool [batch, ...]: whether each element is dropped. UsageError unless the chance is a share below 1.
  at::Tensor dropped(at::IntArrayRef shape, at::Device device) const;
  // x: [batch, ...]; x itself where nothing is dropped.
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace siamese::nn

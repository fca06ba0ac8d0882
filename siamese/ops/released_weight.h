// A weight of which this process holds the rounded copy that products read (ops/operand.h) and nothing else, because
// the float32 numbers lie elsewhere (train/weight_parts.h). The tensor keeps its shape, type and gradient, and autograd
// goes on as ever, but it has no memory: weight_operand gives the rounded copy, and whoever asks for its numbers,
// through any tensor that shares them, gets an error that names it. Some views of it cannot even be made.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace siamese::ops {

class ReleasedWeight {
 public:
  // `weight`: float32 on the CPU, dense, alone in its memory, which goes for good. `rounded`: bfloat16 of the same
  // shape, dense; its numbers may change between two passes. UsageError for others.
  ReleasedWeight(const std::string& name, const at::Tensor& weight, const at::Tensor& rounded);
  // From here on nothing can be read at all.
  ~ReleasedWeight();
  ReleasedWeight(ReleasedWeight&& other) noexcept;
  ReleasedWeight(const ReleasedWeight&) = delete;
  ReleasedWeight& operator=(const ReleasedWeight&) = delete;
  ReleasedWeight& operator=(ReleasedWeight&&) = delete;

 private:
  at::Tensor weight_;  // held, so that no other can come to have its storage
};

}  // namespace siamese::ops

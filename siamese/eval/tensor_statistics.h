// What the numbers of a stored tensor look like, in double and piece by piece: a tensor of any size costs little
// memory.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace siamese::eval {

// Of the finite elements; meaningless when there are none.
struct TensorStatistics {
  double mean = 0;
  double std = 0;  // of the population
  double least = 0;
  double largest = 0;
  int64_t finite = 0;
  int64_t not_finite = 0;
};

TensorStatistics tensor_statistics(const at::Tensor& tensor);

}  // namespace siamese::eval

#include "siamese/ops/rope.h"

#include <ATen/ATen.h>

#include "siamese/ops/scope.h"

namespace siamese::ops {

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const PartScope scope("siamese::rope");
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
}

}  // namespace siamese::ops

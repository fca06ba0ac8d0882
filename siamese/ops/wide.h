// Types that are wide enough to add in: float32 at least.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

// float for bfloat16 and half, which lose a sum's small terms; every other type is itself.
inline at::ScalarType wide_type(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return type == at::kBFloat16 || type == at::kHalf ? at::kFloat : type;
}

// For sums of squares over a whole model: double, where the device has it.
inline at::ScalarType exact_type(at::Device device) { return device.is_mps() ? at::kFloat : at::kDouble; }

inline at::Tensor wide(const at::Tensor& x) { return x.to(wide_type(x)); }

// For a result that is rounded to bfloat16, or of x's own type.
inline at::TensorOptions half_if(bool half, const at::Tensor& x) {
  return half ? x.options().dtype(at::kBFloat16) : x.options();
}

}  // namespace siamese::ops

// Pointers of tensors that may be undefined, for kernels that take null for "absent".
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

inline const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

inline float* writable_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

}  // namespace siamese::ops

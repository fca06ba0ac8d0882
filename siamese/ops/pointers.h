// Pointers of tensors that may be undefined, for kernels that take null for "absent".
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace siamese::ops {

inline const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

// What a custom autograd function takes for a tensor that may be absent.
inline std::optional<at::Tensor> as_optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

inline float* writable_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

}  // namespace siamese::ops

// Pointers of tensors that may be undefined, for kernels that take null for "absent".
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>

#include "siamese/kernels/bfloat16.h"

namespace siamese::ops {

// Of a dense tensor of the type the kernels call T: float or Bfloat16.
template <class T>
const T* data_of(const at::Tensor& tensor) {
  if constexpr (std::is_same_v<T, float>) {
    return tensor.const_data_ptr<float>();
  } else {
    return reinterpret_cast<const T*>(tensor.const_data_ptr<c10::BFloat16>());
  }
}

template <class T>
T* writable_of(const at::Tensor& tensor) {
  if constexpr (std::is_same_v<T, float>) {
    return tensor.mutable_data_ptr<float>();
  } else {
    return reinterpret_cast<T*>(tensor.mutable_data_ptr<c10::BFloat16>());
  }
}

// body(T()) with the kernels' type of this tensor, which is float32 or bfloat16.
template <class Body>
auto with_element_type(const at::Tensor& tensor, const Body& body) {
  return tensor.scalar_type() == at::kBFloat16 ? body(kernels::Bfloat16()) : body(float());
}

inline const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

inline float* writable_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

}  // namespace siamese::ops

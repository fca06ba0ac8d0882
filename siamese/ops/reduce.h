// Sums in a fixed order: the same bits at any thread count.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace siamese::ops {

// Scalar sum of all elements, differentiable.
at::Tensor fixed_sum(const at::Tensor& x);

// Sum of squares of all elements of all tensors (undefined ones have none), a scalar where they are, in double (float
// on a device without it); without gradient.
at::Tensor sum_squares_of(const std::vector<at::Tensor>& tensors);

// The same, read: one wait for the device however many tensors there are.
double sum_squares(const std::vector<at::Tensor>& tensors);
double sum_squares(const at::Tensor& tensor);

// All elements of all tensors, one after the other: one wait for the device, on which they all lie.
std::vector<double> read_numbers(const std::vector<at::Tensor>& tensors);

// sqrt(mean(x^2)), in double (no gradient).
double rms(const at::Tensor& tensor);

namespace plain {

at::Tensor fixed_sum(const at::Tensor& x);
at::Tensor sum_squares_of(at::TensorList tensors);

}  // namespace plain

// log sum exp over the last dimension, which is not empty; written out, because LibTorch's own has no meta kernel.
at::Tensor log_sum_exp(const at::Tensor& x);

}  // namespace siamese::ops

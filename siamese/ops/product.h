// The three matrix products of a linear layer, each by the fastest of what LibTorch offers for its shape (measured:
// docs/performance.md). None of them records gradients. Dense row-major matrices.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

// x w^T: x [rows, in], w [out, in] -> [rows, out]
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& w);

// y w: y [rows, out], w [out, in] -> [rows, in]
at::Tensor times(const at::Tensor& y, const at::Tensor& w);

// The gradient of w in x w^T: into its .grad where gradients are added in place (then undefined is returned), else
// as a new tensor. dy: [rows, out], x: [rows, in].
at::Tensor weight_gradient(const at::Tensor& w, const at::Tensor& dy, const at::Tensor& x);

}  // namespace siamese::ops

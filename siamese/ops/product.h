// The three matrix products of a linear layer, each by what is fastest for it (docs/performance.md): the first two
// LibTorch's oneDNN or, when small, MKL; the third a kernel of ours. None of them records gradients. Matrices in float
// on the CPU, row-major.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

// x w^T: x [rows, in], w [out, in] -> [rows, out]
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& w);

// y w: y [rows, out], w [out, in] -> [rows, in]
at::Tensor times(const at::Tensor& y, const at::Tensor& w);

// gradient += dy^T x, the same bits at any thread count.
void add_weight_gradient(const at::Tensor& gradient, const at::Tensor& dy, const at::Tensor& x);

// The gradient of w in x w^T: into its .grad where gradients are added in place (then undefined is returned), else
// as a new tensor. dy: [rows, out], x: [rows, in].
at::Tensor weight_gradient(const at::Tensor& w, const at::Tensor& dy, const at::Tensor& x);

}  // namespace siamese::ops

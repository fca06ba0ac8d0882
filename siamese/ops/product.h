// Matrix products whose bits do not depend on the number of threads. A large one of floats goes to oneDNN, which sums
// each element in one order however it is cut; everything else is cut here by its shape alone, and each part is a
// library's product on one thread (ops/one_thread.h). Only `product` records gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

// x w^T: x [rows, in], w [out, in] -> [rows, out]
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& w);

// y w: y [rows, out], w [out, in] -> [rows, in]
at::Tensor times(const at::Tensor& y, const at::Tensor& w);

// gradient += dy^T x by a kernel of ours, in float on the CPU.
void add_weight_gradient(const at::Tensor& gradient, const at::Tensor& dy, const at::Tensor& x);

// The gradient of w in x w^T: into its .grad where gradients are added in place (then undefined is returned), else
// as a new tensor. dy: [rows, out], x: [rows, in].
at::Tensor weight_gradient(const at::Tensor& w, const at::Tensor& dy, const at::Tensor& x);

// a b, differentiable, for any dtype and device: what the plain expressions are made of.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

}  // namespace siamese::ops

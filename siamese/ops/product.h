// Matrix products whose bits do not depend on the number of threads. A large one of floats goes to oneDNN, which sums
// each element in one order however it is cut, or, where MKL is faster, to that in tiles; x w^T of few rows is a kernel
// of ours, where an element is one sum (kernels/row_product.h); everything else is cut here by its shape alone, and
// each part is a library's product on one thread (ops/one_thread.h). Operands of bfloat16 give a result of bfloat16,
// summed in float32 and rounded once; where this CPU multiplies none, and for small products, they are widened first.
// Below autograd.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::ops {

// x w^T + bias: x [rows, in], w [out, in], bias [out] or undefined -> [rows, out]
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias = {});

// y w: y [rows, out], w [out, in] -> [rows, in]
at::Tensor times(const at::Tensor& y, const at::Tensor& w);

// dy^T x: dy [rows, out], x [rows, in] -> [out, in], row-major: the gradient of w in x w^T.
at::Tensor transposed_times(const at::Tensor& dy, const at::Tensor& x);

// The same by a kernel of ours, in float32 on the CPU (dy and x may be bfloat16), added to `gradient`, which is
// row-major.
void add_weight_gradient(const at::Tensor& gradient, const at::Tensor& dy, const at::Tensor& x);

// The same, added to `into`, or to zeros of its own where that is undefined; returned.
at::Tensor weight_gradient(const at::Tensor& into, const at::Tensor& dy, const at::Tensor& x);

// a b + bias in tiles cut by its shape alone, each a library's product on one thread: how MKL does a large product
// here.
at::Tensor multiply_in_tiles(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias = {});

// x as a matrix: every dimension but the last counts rows. A view where x is dense.
at::Tensor as_rows(const at::Tensor& x);

}  // namespace siamese::ops

// y = x W^T for a narrow W (few outputs), with the same bits at any thread count. A library cuts such a product, and
// above all the gradient of W, a sum over all rows, by its number of threads; here rows are cut into parts by their
// number alone, each part is one serial product, and the parts of the gradient are added in order.
// x: [..., in]; weight: [out, in].
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

namespace siamese::ops {

at::Tensor row_linear(const at::Tensor& x, const at::Tensor& weight);

// Such a product of streams that go on, in one look at them:
//   y = x W^T;   squares = sum over each row of x^2, [..., 1], float32 at least;   x: itself, to go on with
// What comes back to x is added in backward's own pass, where a use of x beside this one would leave a sum to autograd.
// The op siamese::row_project gives y and squares: an op may not return its input.
struct RowProjection {
  at::Tensor y;
  at::Tensor squares;
  at::Tensor x;
};
RowProjection row_project(const at::Tensor& x, const at::Tensor& weight);

// A copy of a small parameter for each row: [leading..., shape of the parameter]. Broadcasting would leave its
// gradient, a sum over everything, to a reduction that is cut by the number of threads.
at::Tensor for_each_row(const at::Tensor& parameter, c10::SymIntArrayRef leading);

namespace plain {

at::Tensor row_linear(const at::Tensor& x, const at::Tensor& weight);
RowProjection row_project(const at::Tensor& x, const at::Tensor& weight);
at::Tensor for_each_row(const at::Tensor& parameter, c10::SymIntArrayRef leading);

}  // namespace plain

}  // namespace siamese::ops

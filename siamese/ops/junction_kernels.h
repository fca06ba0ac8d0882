// The kernels of the op junction: plain (junction_plain.cc), fused and meta (junction_kernels.cc). None of them records
// for autograd; tensors that come in are the caller's and only read, those that come out are new and dense.
#pragma once

#include <tuple>

#include "siamese/ops/junction_plan.h"

namespace siamese::ops::junction_op {

// V, X, input, U and the statistics; what the plan does not make is without elements.
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Made plain_forward(const PerSlot& given, const JunctionPlan& plan);
Made fused_forward(const PerSlot& given, const JunctionPlan& plan);
Made meta_forward(const PerSlot& given, const JunctionPlan& plan);

// What backward is given.
struct Returning {
  at::Tensor d_y_sum;  // undefined: 0, as for the other two
  at::Tensor d_x_out;
  at::Tensor d_input;
  PerSlot saved;  // z only with its norm or for the gradient of its gate, U for x, V for y
  at::Tensor statistics;
};

// Those of the gradients that are wanted and exist.
PerSlot plain_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted);
PerSlot fused_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted);
PerSlot meta_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted);

void check_returning(const Returning& returning, const JunctionPlan& plan);

// Whether there is a kernel for such a pass over y. Then backward can also add the gradients of gains and scales to
// .grad, where ops/gradient.h says so; those come back undefined.
bool has_kernel(const at::Tensor& y, const JunctionPlan& plan);
PerSlot backward_in_place(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted);

}  // namespace siamese::ops::junction_op

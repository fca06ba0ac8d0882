#include "siamese/ops/rope.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/rope.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
}

}  // namespace plain

namespace {

template <class Kernel>
at::Tensor rotate(Kernel kernel, const at::Tensor& given, const at::Tensor& cos, const at::Tensor& sin) {
  const at::Tensor x = given.contiguous();
  const kernels::RopeShape shape{.tokens = x.size(-3), .heads = x.size(-2), .half = x.size(-1) / 2};
  const int64_t width = shape.heads * 2 * shape.half;
  at::Tensor y = at::empty_like(x);
  at::parallel_for(0, x.numel() / width, row_grain(width), [&](int64_t begin, int64_t end) {
    kernel(shape, x.const_data_ptr<float>(), cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
           y.mutable_data_ptr<float>(), begin, end);
  });
  return y;
}

class FusedRope : public torch::autograd::Function<FusedRope> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(kernels::rope_forward, x, cos, sin);
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    return {rotate(kernels::rope_backward, grads[0], saved[0], saved[1]), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const PartScope scope("part::rope");
  if (x.numel() == 0 || !use_fused("rope", {x, cos, sin})) return plain::rope(x, cos, sin);
  return FusedRope::apply(x, cos.contiguous(), sin.contiguous());
}

}  // namespace siamese::ops

#include "siamese/ops/rope.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/rope.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
}

}  // namespace plain

namespace rope_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// x, or dy in backward.
void check(const char* op, const char* name, const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  Arguments arguments(op, name, x);
  arguments.least_rank(name, x, 3);
  arguments.require(x.sym_size(-1) % 2 == 0, name, "an even last dimension", "shape " + shape_text(x.sym_sizes()));
  const std::vector<c10::SymInt> table = {x.sym_size(-3), 1, x.sym_size(-1) / 2};
  arguments.shape("cos", cos, table).shape("sin", sin, table);
}

template <class Kernel>
at::Tensor rotate(Kernel kernel, const at::Tensor& given, const at::Tensor& given_cos, const at::Tensor& given_sin) {
  const at::Tensor x = given.contiguous();
  const at::Tensor cos = given_cos.contiguous();
  const at::Tensor sin = given_sin.contiguous();
  const kernels::RopeShape shape{.tokens = x.size(-3), .heads = x.size(-2), .half = x.size(-1) / 2};
  const int64_t width = shape.heads * 2 * shape.half;
  at::Tensor y = at::empty_like(x);
  at::parallel_for(0, x.numel() / std::max<int64_t>(1, width), row_grain(width), [&](int64_t begin, int64_t end) {
    kernel(shape, x.const_data_ptr<float>(), cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
           y.mutable_data_ptr<float>(), begin, end);
  });
  return y;
}

at::Tensor plain_forward(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  check("rope", "x", x, cos, sin);
  const OneThread one_thread;
  return plain::rope(x, cos, sin).contiguous();
}

at::Tensor fused_forward(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  check("rope", "x", x, cos, sin);
  return use_fused("rope", {x}) ? rotate(kernels::rope_forward, x, cos, sin) : plain_forward(x, cos, sin);
}

at::Tensor meta_forward(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  check("rope", "x", x, cos, sin);
  return empty_dense(x);
}

// The rotation by the negative angle.
at::Tensor plain_backward(const at::Tensor& dy, const at::Tensor& cos, const at::Tensor& sin) {
  check("rope_backward", "dy", dy, cos, sin);
  const OneThread one_thread;
  return plain::rope(dy, cos, -sin).contiguous();
}

at::Tensor fused_backward(const at::Tensor& dy, const at::Tensor& cos, const at::Tensor& sin) {
  check("rope_backward", "dy", dy, cos, sin);
  return use_fused("rope", {dy}) ? rotate(kernels::rope_backward, dy, cos, sin) : plain_backward(dy, cos, sin);
}

at::Tensor meta_backward(const at::Tensor& dy, const at::Tensor& cos, const at::Tensor& sin) {
  check("rope_backward", "dy", dy, cos, sin);
  return empty_dense(dy);
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("rope_forward", fused_forward);
    context->save_for_backward({cos, sin});
    return op.call(x, cos, sin);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (!context->needs_input_grad(0)) return {at::Tensor(), at::Tensor(), at::Tensor()};
    const auto saved = context->get_saved_variables();
    const BelowAutograd below;
    static const auto op = find_op("rope_backward", fused_backward);
    return {op.call(grads[0], saved[0], saved[1]), at::Tensor(), at::Tensor()};
  }
};

at::Tensor pair(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  Arguments("rope", "x", x).constant("cos", cos).constant("sin", sin);
  return Pair::apply(x, dense_once(cos), dense_once(sin));
}

at::Tensor alone(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  static const auto op = find_op("rope_forward", fused_forward);
  return op.call(x, cos, sin);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "rope(Tensor x, Tensor cos, Tensor sin) -> Tensor", pair, alone);
  define_part(library, "rope_forward(Tensor x, Tensor cos, Tensor sin) -> Tensor", plain_forward, fused_forward,
              meta_forward);
  define_part(library, "rope_backward(Tensor dy, Tensor cos, Tensor sin) -> Tensor", plain_backward, fused_backward,
              meta_backward);
}

}  // namespace rope_op

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const PartScope scope("part::rope");
  static const auto op = find_op("rope", rope_op::pair);
  return op.call(x, cos, sin);
}

}  // namespace siamese::ops

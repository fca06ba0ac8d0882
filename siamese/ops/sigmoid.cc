// silu and sigmoid of ops/activation.h. Only LibTorch's own: plain is all there is, on every device.
#include <ATen/ATen.h>

#include "siamese/ops/activation.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/one_thread.h"

namespace siamese::ops {
namespace sigmoid_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// What an op of this file is: its names, forward, and backward from dy and what it kept, x or y.
struct Silu {
  static constexpr const char* kName = "silu";
  static constexpr const char* kForward = "silu_forward";
  static constexpr const char* kBackward = "silu_backward";
  static constexpr bool kKeepsOutput = false;
  static at::Tensor forward(const at::Tensor& x) { return at::silu(x); }
  static at::Tensor backward(const at::Tensor& dy, const at::Tensor& x) { return at::silu_backward(dy, x); }
};

struct Sigmoid {
  static constexpr const char* kName = "sigmoid";
  static constexpr const char* kForward = "sigmoid_forward";
  static constexpr const char* kBackward = "sigmoid_backward";
  static constexpr bool kKeepsOutput = true;
  static at::Tensor forward(const at::Tensor& x) { return at::sigmoid(x); }
  static at::Tensor backward(const at::Tensor& dy, const at::Tensor& y) { return at::sigmoid_backward(dy, y); }
};

template <class Op>
void check_backward(const at::Tensor& dy, const at::Tensor& kept) {
  Arguments(Op::kBackward, Op::kKeepsOutput ? "y" : "x", kept).shape("dy", dy, kept.sym_sizes());
}

template <class Op>
at::Tensor plain_forward(const at::Tensor& x) {
  Arguments(Op::kName, "x", x);
  const OneThread one_thread;
  return Op::forward(x).contiguous();
}

template <class Op>
at::Tensor meta_forward(const at::Tensor& x) {
  Arguments(Op::kName, "x", x);
  return empty_dense(x);
}

template <class Op>
at::Tensor plain_backward(const at::Tensor& dy, const at::Tensor& kept) {
  check_backward<Op>(dy, kept);
  const OneThread one_thread;
  return Op::backward(dy, kept).contiguous();
}

template <class Op>
at::Tensor meta_backward(const at::Tensor& dy, const at::Tensor& kept) {
  check_backward<Op>(dy, kept);
  return empty_dense(kept);
}

template <class Op>
class Pair : public torch::autograd::Function<Pair<Op>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op(Op::kForward, plain_forward<Op>);
    const at::Tensor y = op.call(x);
    context->save_for_backward({Op::kKeepsOutput ? y : x});
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const BelowAutograd below;
    static const auto op = find_op(Op::kBackward, plain_backward<Op>);
    return {op.call(grads[0], context->get_saved_variables()[0])};
  }
};

template <class Op>
at::Tensor pair(const at::Tensor& x) {
  return Pair<Op>::apply(x);
}

template <class Op>
at::Tensor alone(const at::Tensor& x) {
  static const auto op = find_op(Op::kForward, plain_forward<Op>);
  return op.call(x);
}

template <class Op>
void define(torch::Library& library) {
  define_pair(library, Op::kName + std::string("(Tensor x) -> Tensor"), pair<Op>, alone<Op>);
  define_part(library, Op::kForward + std::string("(Tensor x) -> Tensor"), plain_forward<Op>, plain_forward<Op>,
              meta_forward<Op>);
  const std::string kept = Op::kKeepsOutput ? "y" : "x";
  define_part(library, Op::kBackward + ("(Tensor dy, Tensor " + kept + ") -> Tensor"), plain_backward<Op>,
              plain_backward<Op>, meta_backward<Op>);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define<Silu>(library);
  define<Sigmoid>(library);
}

}  // namespace sigmoid_op

at::Tensor silu(const at::Tensor& x) {
  static const auto op = find_op("silu", sigmoid_op::pair<sigmoid_op::Silu>);
  return op.call(x);
}

at::Tensor sigmoid(const at::Tensor& x) {
  static const auto op = find_op("sigmoid", sigmoid_op::pair<sigmoid_op::Sigmoid>);
  return op.call(x);
}

}  // namespace siamese::ops

#include "siamese/ops/activation.h"

#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor activation(Activation kind, const at::Tensor& x) {
  if (kind != Activation::swiglu) return at::gelu(x, kind == Activation::gelu ? "none" : "tanh");
  const auto halves = x.chunk(2, -1);
  return at::silu(halves[1]) * halves[0];
}

}  // namespace plain

Activation activation_named(const char* op, std::string_view kind) {
  if (const auto found = enum_from_text<Activation>(kind); found.has_value()) return *found;
  std::string choices;
  for (const auto& choice : enum_choices<Activation>()) choices += (choices.empty() ? "" : " | ") + choice;
  throw UsageError("siamese::" + std::string(op) + ": kind: expected " + choices + ", got " + std::string(kind));
}

namespace activation_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Word = std::string_view;

// The width of y.
c10::SymInt check(const char* op, Word kind, const at::Tensor& x) {
  Arguments arguments(op, "x", x);
  arguments.least_rank("x", x, 1);
  const c10::SymInt width = x.sym_size(-1);
  if (activation_named(op, kind) != Activation::swiglu) return width;
  arguments.require(width % 2 == 0, "x", "an even last dimension, two halves", "shape " + shape_text(x.sym_sizes()));
  return width / 2;
}

void check_backward(Word kind, const at::Tensor& dy, const at::Tensor& x) {
  constexpr const char* kOp = "activation_backward";
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  const c10::SymInt cols = check(kOp, kind, x);
  sizes.back() = cols;
  Arguments(kOp, "x", x).shape("dy", dy, sizes);
}

int64_t rows_of(const at::Tensor& y) { return y.numel() / std::max<int64_t>(1, y.size(-1)); }

at::Tensor plain_forward(Word kind, const at::Tensor& x) {
  check("activation", kind, x);
  const OneThread one_thread;
  return plain::activation(activation_named("activation", kind), x).contiguous();
}

at::Tensor fused_forward(Word kind, const at::Tensor& given) {
  const c10::SymInt width = check("activation", kind, given);
  if (!use_fused("activation", {given})) return plain_forward(kind, given);
  const Activation which = activation_named("activation", kind);
  const at::Tensor x = given.contiguous();
  at::Tensor y = empty_dense(x, width);
  const int64_t cols = y.size(-1);
  at::parallel_for(0, rows_of(y), row_grain(cols), [&](int64_t begin, int64_t end) {
    kernels::activation_forward(which, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), begin, end, cols);
  });
  return y;
}

at::Tensor meta_forward(Word kind, const at::Tensor& x) { return empty_dense(x, check("activation", kind, x)); }

at::Tensor plain_backward(Word kind, const at::Tensor& dy, const at::Tensor& x) {
  check_backward(kind, dy, x);
  const Activation which = activation_named("activation_backward", kind);
  return gradients_of({x}, {true}, {dy},
                      [&](const Tensors& given) { return Tensors{plain::activation(which, given[0])}; })[0];
}

at::Tensor fused_backward(Word kind, const at::Tensor& given_dy, const at::Tensor& given) {
  check_backward(kind, given_dy, given);
  if (!use_fused("activation", {given})) return plain_backward(kind, given_dy, given);
  const Activation which = activation_named("activation_backward", kind);
  const at::Tensor x = given.contiguous();
  const at::Tensor dy = given_dy.contiguous();
  const int64_t cols = dy.size(-1);
  at::Tensor dx = at::empty_like(x);
  at::parallel_for(0, rows_of(dy), row_grain(cols), [&](int64_t begin, int64_t end) {
    kernels::activation_backward(which, x.const_data_ptr<float>(), dy.const_data_ptr<float>(),
                                 dx.mutable_data_ptr<float>(), nullptr, begin, end, cols);
  });
  return dx;
}

at::Tensor meta_backward(Word kind, const at::Tensor& dy, const at::Tensor& x) {
  check_backward(kind, dy, x);
  return empty_dense(x);
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, Word kind, const at::Tensor& x) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("activation_forward", fused_forward);
    context->save_for_backward({x});
    context->saved_data["kind"] = std::string(kind);
    return op.call(kind, x);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const BelowAutograd below;
    static const auto op = find_op("activation_backward", fused_backward);
    return {at::Tensor(),
            op.call(context->saved_data["kind"].toStringRef(), grads[0], context->get_saved_variables()[0])};
  }
};

at::Tensor pair(Word kind, const at::Tensor& x) { return Pair::apply(kind, dense_once(x)); }

at::Tensor alone(Word kind, const at::Tensor& x) {
  static const auto op = find_op("activation_forward", fused_forward);
  return op.call(kind, x);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "activation(str kind, Tensor x) -> Tensor", pair, alone);
  define_part(library, "activation_forward(str kind, Tensor x) -> Tensor", plain_forward, fused_forward, meta_forward);
  define_part(library, "activation_backward(str kind, Tensor dy, Tensor x) -> Tensor", plain_backward, fused_backward,
              meta_backward);
}

}  // namespace activation_op

at::Tensor activation(Activation kind, const at::Tensor& x) {
  const PartScope scope("part::activation");
  static const auto op = find_op("activation", activation_op::pair);
  return op.call(enum_text(kind), x);
}

}  // namespace siamese::ops

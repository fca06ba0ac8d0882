#include "siamese/ops/linear.h"

#include <array>
#include <tuple>

#include <ATen/ATen.h>

#include "siamese/kernels/reduce.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/product.h"

namespace siamese::ops {

namespace plain {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor y = at::matmul(x, weight.t());
  return bias.defined() ? y + bias : y;
}

}  // namespace plain

at::Tensor column_sums(const at::Tensor& given) {
  const at::Tensor rows = given.contiguous();
  const int64_t cols = rows.size(1);
  RowPartials partials(rows.size(0), cols, 1);
  with_element_type(rows, [&](auto element) {
    const auto* const data = data_of<decltype(element)>(rows);
    partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
      kernels::add_column_sums(data, sums[0], begin, end, cols);
    });
  });
  return partials.total(0);
}

namespace linear_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Wanted = std::array<bool, 3>;

void check(const char* op, const at::Tensor& x, const at::Tensor& weight, const Optional& bias) {
  Arguments arguments(op, "x", x);
  arguments.least_rank("x", x, 1).rank("weight", weight, 2);
  arguments.parameter("weight", weight, {weight.sym_size(0), x.sym_size(-1)});
  Arguments(op, "weight", weight).shape("bias", or_undefined(bias), {weight.sym_size(0)});
}

void check_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight) {
  check("linear_backward", x, weight, {});
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes.back() = weight.sym_size(0);
  Arguments("linear_backward", "x", x).shape("dy", dy, sizes);
}

at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const Optional& bias) {
  const at::Tensor y = times_transposed(as_rows(x), weight_operand(weight, x), or_undefined(bias));
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return y.view(sizes);
}

at::Tensor plain_forward(const at::Tensor& x, const at::Tensor& weight, const Optional& bias) {
  check("linear", x, weight, bias);
  return projected(x, weight, bias);
}

// Both paths are the same products; use_fused refuses where the mode asks for a kernel that is not there.
at::Tensor fused_forward(const at::Tensor& x, const at::Tensor& weight, const Optional& bias) {
  check("linear", x, weight, bias);
  use_fused_bfloat16("linear", {x});
  return projected(x, weight, bias);
}

at::Tensor meta_forward(const at::Tensor& x, const at::Tensor& weight, const Optional& bias) {
  check("linear", x, weight, bias);
  return empty_dense(x, weight.sym_size(0));
}

// -> dx, dweight, dbias
Made plain_backward(const at::Tensor& given_dy, const at::Tensor& x, const at::Tensor& weight, Wanted wanted) {
  check_backward(given_dy, x, weight);
  const at::Tensor dy = as_rows(given_dy);
  const at::Tensor dx = wanted[0] ? times(dy, weight_operand(weight, x)).view(x.sizes()) : no_gradient(x);
  const at::Tensor dweight =
      wanted[1] ? transposed_times(dy, as_rows(x)).to(weight.scalar_type()) : no_gradient(weight);
  const OneThread one_thread;
  return {dx, dweight, wanted[2] ? dy.sum(0, /*keepdim=*/false, weight.scalar_type()) : no_gradient(weight)};
}

// The weight's gradient is added to `into` where that is defined.
Made gradients(const at::Tensor& given_dy, const at::Tensor& x, const at::Tensor& weight, Wanted wanted,
               const at::Tensor& into) {
  const at::Tensor dy = as_rows(given_dy);
  const at::Tensor dx = wanted[0] ? times(dy, weight_operand(weight, x)).view(x.sizes()) : no_gradient(x);
  const at::ScalarType type = weight.scalar_type();
  const at::Tensor dweight = wanted[1] ? weight_gradient(into, dy, as_rows(x)).to(type) : no_gradient(weight);
  return {dx, dweight, wanted[2] ? column_sums(dy).to(type) : no_gradient(weight)};
}

Made fused_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, Wanted wanted) {
  check_backward(dy, x, weight);
  if (!use_fused_bfloat16("linear", {x})) return plain_backward(dy, x, weight, wanted);
  return gradients(dy, x, weight, wanted, {});
}

Made meta_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight, Wanted wanted) {
  check_backward(dy, x, weight);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] ? empty_dense(weight) : no_gradient(weight),
          wanted[2] ? at::empty_symint({weight.sym_size(0)}, weight.options()) : no_gradient(weight)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const Optional& bias) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("linear_forward", fused_forward);
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    return op.call(x, weight, bias);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto needed = wanted_gradients(context, {true, true, context->saved_data["has_bias"].toBool()});
    const Wanted wanted{needed[0], needed[1], needed[2]};
    const BelowAutograd below;
    static const auto op = find_op("linear_backward", fused_backward);
    const bool in_place = wanted[1] && adds_in_place(saved[1]) && use_fused_bfloat16("linear", {saved[0]});
    const auto [dx, dweight, dbias] = in_place ? gradients(grads[0], saved[0], saved[1], wanted, saved[1].grad())
                                               : op.call(grads[0], saved[0], saved[1], wanted);
    return {if_wanted(wanted[0], dx), if_wanted(wanted[1] && !in_place, dweight), if_wanted(wanted[2], dbias)};
  }
};

at::Tensor pair(const at::Tensor& x, const at::Tensor& weight, const Optional& bias) {
  return Pair::apply(dense_once(x), weight, bias);
}

at::Tensor alone(const at::Tensor& x, const at::Tensor& weight, const Optional& bias) {
  static const auto op = find_op("linear_forward", fused_forward);
  return op.call(x, weight, bias);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor", pair, alone);
  define_part(library, "linear_forward(Tensor x, Tensor weight, Tensor? bias) -> Tensor", plain_forward, fused_forward,
              meta_forward);
  define_part(library,
              "linear_backward(Tensor dy, Tensor x, Tensor weight, bool[3] wanted) -> "
              "(Tensor dx, Tensor dweight, Tensor dbias)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace linear_op

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  static const auto op = find_op("linear", linear_op::pair);
  return op.call(x, weight, as_optional(bias));
}

}  // namespace siamese::ops

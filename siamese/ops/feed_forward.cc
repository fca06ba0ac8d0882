#include "siamese/ops/feed_forward.h"

#include <array>
#include <string>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/library.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/product.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor feed_forward(Activation kind, const at::Tensor& x, const FeedForwardWeights& weights) {
  const at::Tensor active = activation(kind, linear(x, weights.w_in, weights.b_in));
  return linear(active, weights.w_out, weights.b_out);
}

}  // namespace plain

// Forward: y, and the input projection [..., rows of w_in], bias included.
namespace feed_forward_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Word = std::string_view;
using Made = std::tuple<at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;  // in the order of inputs
using Wanted = std::array<bool, 5>;  // x, w_in, b_in, w_out, b_out

Activation check(const char* op, Word kind, const at::Tensor& x, const at::Tensor& w_in, const Optional& b_in,
                 const at::Tensor& w_out, const Optional& b_out) {
  const Activation which = activation_named(op, kind);
  Arguments arguments(op, "x", x);
  arguments.least_rank("x", x, 1).rank("w_in", w_in, 2).rank("w_out", w_out, 2);
  const c10::SymInt width = x.sym_size(-1);
  const c10::SymInt hidden = w_out.sym_size(1);
  const c10::SymInt inner = which == Activation::swiglu ? hidden * 2 : hidden;
  arguments.parameter("w_in", w_in, {inner, width});
  Arguments(op, "w_in", w_in)
      .shape("w_out", w_out, {width, hidden})
      .shape("b_in", or_undefined(b_in), {inner})
      .shape("b_out", or_undefined(b_out), {width});
  return which;
}

Activation check_backward(Word kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& projected,
                          const at::Tensor& w_in, const at::Tensor& w_out) {
  constexpr const char* kOp = "feed_forward_backward";
  const Activation which = check(kOp, kind, x, w_in, {}, w_out, {});
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes.back() = w_in.sym_size(0);
  Arguments(kOp, "x", x).shape("dy", dy, x.sym_sizes()).shape("projected", projected, sizes);
  return which;
}

at::Tensor projection(const at::Tensor& rows, const at::Tensor& weight, const Optional& bias) {
  return times_transposed(rows, weight_operand(weight, rows), or_undefined(bias));
}

at::Tensor with_last(const at::Tensor& rows, const at::Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

Made plain_forward(Word kind, const at::Tensor& x, const at::Tensor& w_in, const Optional& b_in,
                   const at::Tensor& w_out, const Optional& b_out) {
  const Activation which = check("feed_forward", kind, x, w_in, b_in, w_out, b_out);
  const at::Tensor projected = projection(as_rows(x), w_in, b_in);
  at::Tensor active;
  {
    const OneThread one_thread;
    active = plain::activation(which, projected);
  }
  return {projection(active, w_out, b_out).view(x.sizes()), with_last(projected, x)};
}

Made fused_forward(Word kind, const at::Tensor& x, const at::Tensor& w_in, const Optional& b_in,
                   const at::Tensor& w_out, const Optional& b_out) {
  const Activation which = check("feed_forward", kind, x, w_in, b_in, w_out, b_out);
  if (!use_fused_bfloat16("feed_forward", {x})) return plain_forward(kind, x, w_in, b_in, w_out, b_out);
  const at::Tensor projected = projection(as_rows(x), w_in, b_in);
  const int64_t hidden = w_out.size(1);
  const at::Tensor active = at::empty({projected.size(0), hidden}, x.options());
  {
    const PartScope scope("part::activation");
    at::parallel_for(0, active.size(0), row_grain(hidden), [&](int64_t begin, int64_t end) {
      with_element_type(x, [&](auto element) {
        using T = decltype(element);
        kernels::activation_forward(which, data_of<T>(projected), writable_of<T>(active), begin, end, hidden);
      });
    });
  }
  return {projection(active, w_out, b_out).view(x.sizes()), with_last(projected, x)};
}

// Meta kernels also make what the kernels hold meanwhile: models/pass_memory counts it.
Made meta_forward(Word kind, const at::Tensor& x, const at::Tensor& w_in, const Optional& b_in, const at::Tensor& w_out,
                  const Optional& b_out) {
  check("feed_forward", kind, x, w_in, b_in, w_out, b_out);
  const at::Tensor projected = empty_dense(x, w_in.sym_size(0));
  const at::Tensor active = empty_dense(x, w_out.sym_size(1));
  return {empty_dense(x), projected};
}

Gradients plain_backward(Word kind, const at::Tensor& given_dy, const at::Tensor& x, const at::Tensor& given_projected,
                         const at::Tensor& w_in, const at::Tensor& w_out, Wanted wanted) {
  const Activation which = check_backward(kind, given_dy, x, given_projected, w_in, w_out);
  const at::Tensor dy = as_rows(given_dy);
  const at::Tensor projected = as_rows(given_projected);
  const auto activate = [&](const Tensors& given) { return Tensors{plain::activation(which, given[0])}; };
  at::Tensor dprojected;
  if (wanted[0] || wanted[1] || wanted[2]) {
    dprojected = gradients_of({projected}, {true}, {times(dy, weight_operand(w_out, dy))}, activate)[0];
  }
  const auto sum = [&](const at::Tensor& rows) {
    const OneThread one_thread;
    return rows.sum(0, /*keepdim=*/false, w_in.scalar_type());
  };
  const auto active = [&] {
    const OneThread one_thread;
    return activate({projected})[0];
  };
  const at::ScalarType type = w_in.scalar_type();
  return {wanted[0] ? times(dprojected, weight_operand(w_in, x)).view(x.sizes()) : no_gradient(x),
          wanted[1] ? transposed_times(dprojected, as_rows(x)).to(type) : no_gradient(w_in),
          wanted[2] ? sum(dprojected) : no_gradient(w_in),
          wanted[3] ? transposed_times(dy, active()).to(type) : no_gradient(w_in),
          wanted[4] ? sum(dy) : no_gradient(w_in)};
}

// From the gradient of the activation's output, in `active`: the gradient of the projection, and in the place of that
// gradient the activation's output once more.
at::Tensor activate_backward(Activation kind, const at::Tensor& projected, const at::Tensor& active) {
  const PartScope scope("part::activation");
  const int64_t hidden = active.size(1);
  at::Tensor dprojected = at::empty_like(projected);
  at::parallel_for(0, active.size(0), row_grain(hidden), [&](int64_t begin, int64_t end) {
    with_element_type(projected, [&](auto element) {
      using T = decltype(element);
      T* const value = writable_of<T>(active);
      kernels::activation_backward(kind, data_of<T>(projected), value, writable_of<T>(dprojected), value, begin, end,
                                   hidden);
    });
  });
  return dprojected;
}

// The weights' gradients are added to `into_in` and `into_out` where those are defined.
Gradients gradients(Activation kind, const at::Tensor& given_dy, const at::Tensor& x, const at::Tensor& projected,
                    const at::Tensor& w_in, const at::Tensor& w_out, Wanted wanted, const at::Tensor& into_in,
                    const at::Tensor& into_out) {
  const at::Tensor dy = as_rows(given_dy).contiguous();
  const at::ScalarType type = w_in.scalar_type();
  at::Tensor dprojected, dw_out = no_gradient(w_in);
  if (wanted[0] || wanted[1] || wanted[2] || wanted[3]) {
    const at::Tensor active = times(dy, weight_operand(w_out, dy));  // first the gradient, then the activation
    dprojected = activate_backward(kind, as_rows(projected).contiguous(), active);
    if (wanted[3]) dw_out = weight_gradient(into_out, dy, active).to(type);
  }
  const at::Tensor db_out = wanted[4] ? column_sums(dy).to(type) : no_gradient(w_in);
  const at::Tensor dw_in = wanted[1] ? weight_gradient(into_in, dprojected, as_rows(x)).to(type) : no_gradient(w_in);
  const at::Tensor db_in = wanted[2] ? column_sums(dprojected).to(type) : no_gradient(w_in);
  const at::Tensor dx = wanted[0] ? times(dprojected, weight_operand(w_in, x)).view(x.sizes()) : no_gradient(x);
  return {dx, dw_in, db_in, dw_out, db_out};
}

Gradients fused_backward(Word kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& projected,
                         const at::Tensor& w_in, const at::Tensor& w_out, Wanted wanted) {
  const Activation which = check_backward(kind, dy, x, projected, w_in, w_out);
  if (!use_fused_bfloat16("feed_forward", {x})) return plain_backward(kind, dy, x, projected, w_in, w_out, wanted);
  return gradients(which, dy, x, projected, w_in, w_out, wanted, {}, {});
}

Gradients meta_backward(Word kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& projected,
                        const at::Tensor& w_in, const at::Tensor& w_out, Wanted wanted) {
  check_backward(kind, dy, x, projected, w_in, w_out);
  const auto row = [&](const at::Tensor& weight) { return at::empty_symint({weight.sym_size(0)}, weight.options()); };
  const at::Tensor active = empty_dense(x, w_out.sym_size(1));
  const at::Tensor dprojected = empty_dense(projected);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] ? empty_dense(w_in) : no_gradient(w_in),
          wanted[2] ? row(w_in) : no_gradient(w_in), wanted[3] ? empty_dense(w_out) : no_gradient(w_in),
          wanted[4] ? row(w_out) : no_gradient(w_in)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, Word kind, const at::Tensor& x, const at::Tensor& w_in,
                            const Optional& b_in, const at::Tensor& w_out, const Optional& b_out) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("feed_forward_forward", fused_forward);
    const auto [y, projected] = op.call(kind, x, w_in, b_in, w_out, b_out);
    context->save_for_backward({x, projected, w_in, w_out});
    context->saved_data["kind"] = std::string(kind);
    context->saved_data["has_b_in"] = b_in.has_value();
    context->saved_data["has_b_out"] = b_out.has_value();
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& projected = saved[1];
    const at::Tensor& w_in = saved[2];
    const at::Tensor& w_out = saved[3];
    const std::string kind = context->saved_data["kind"].toStringRef();
    const auto needed = wanted_gradients(context, {true, true, context->saved_data["has_b_in"].toBool(), true,
                                                   context->saved_data["has_b_out"].toBool()});
    const Wanted wanted{needed[0], needed[1], needed[2], needed[3], needed[4]};
    const BelowAutograd below;
    static const auto op = find_op("feed_forward_backward", fused_backward);
    const bool in_place_in = wanted[1] && adds_in_place(w_in) && use_fused_bfloat16("feed_forward", {x});
    const bool in_place_out = wanted[3] && adds_in_place(w_out) && use_fused_bfloat16("feed_forward", {x});
    const auto [dx, dw_in, db_in, dw_out, db_out] =
        in_place_in || in_place_out
            ? gradients(activation_named("feed_forward", kind), grads[0], x, projected, w_in, w_out, wanted,
                        in_place_in ? w_in.grad() : at::Tensor(), in_place_out ? w_out.grad() : at::Tensor())
            : op.call(kind, grads[0], x, projected, w_in, w_out, wanted);
    return {at::Tensor(),
            if_wanted(wanted[0], dx),
            if_wanted(wanted[1] && !in_place_in, dw_in),
            if_wanted(wanted[2], db_in),
            if_wanted(wanted[3] && !in_place_out, dw_out),
            if_wanted(wanted[4], db_out)};
  }
};

at::Tensor pair(Word kind, const at::Tensor& x, const at::Tensor& w_in, const Optional& b_in, const at::Tensor& w_out,
                const Optional& b_out) {
  return Pair::apply(kind, dense_once(x), w_in, b_in, w_out, b_out);
}

at::Tensor alone(Word kind, const at::Tensor& x, const at::Tensor& w_in, const Optional& b_in, const at::Tensor& w_out,
                 const Optional& b_out) {
  static const auto op = find_op("feed_forward_forward", fused_forward);
  return std::get<0>(op.call(kind, x, w_in, b_in, w_out, b_out));
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string inputs = "(str kind, Tensor x, Tensor w_in, Tensor? b_in, Tensor w_out, Tensor? b_out)";
  define_pair(library, "feed_forward" + inputs + " -> Tensor", pair, alone);
  define_part(library, "feed_forward_forward" + inputs + " -> (Tensor y, Tensor projected)", plain_forward,
              fused_forward, meta_forward);
  define_part(library,
              "feed_forward_backward(str kind, Tensor dy, Tensor x, Tensor projected, Tensor w_in, Tensor w_out, "
              "bool[5] wanted) -> (Tensor dx, Tensor dw_in, Tensor db_in, Tensor dw_out, Tensor db_out)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace feed_forward_op

at::Tensor feed_forward(Activation kind, const at::Tensor& x, const FeedForwardWeights& weights) {
  static const auto op = find_op("feed_forward", feed_forward_op::pair);
  return op.call(enum_text(kind), x, weights.w_in, as_optional(weights.b_in), weights.w_out,
                 as_optional(weights.b_out));
}

}  // namespace siamese::ops

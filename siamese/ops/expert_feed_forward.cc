#include "siamese/ops/expert_feed_forward.h"

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/expert_kernels.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {
namespace expert_detail {

// The choices sorted by expert, stable, as expert_groups.h does for our kernels. Here on any device: how many each
// expert has is the size of a product, so the host reads these counts, once a call.
struct SortedChoices {
  at::Tensor order;  // [rows k]: the choice at each sorted place
  at::Tensor place;  // [rows k]: the sorted place of each choice
  std::vector<int64_t> counts;
};

SortedChoices sort_choices(const at::Tensor& chosen, int64_t experts) {
  const at::Tensor flat = chosen.reshape({-1});
  const at::Tensor order = flat.argsort(/*stable=*/true);
  const at::Tensor place = at::empty_like(order).scatter_(0, order, at::arange(flat.numel(), flat.options()));
  const at::Tensor counts =
      at::zeros({experts}, flat.options()).scatter_add_(0, flat, at::ones_like(flat)).to(at::kCPU);
  const int64_t* const count = counts.const_data_ptr<int64_t>();
  return {order, place, {count, count + experts}};
}

// Each sorted row times the transposed weight of its expert: w [experts, out, in]. The weights are taken apart once: a
// gradient of w[e] would be as large as w for every e.
at::Tensor times_of_expert(const at::Tensor& rows, const SortedChoices& sorted, const at::Tensor& w) {
  const Tensors of_expert = rows.split_with_sizes(sorted.counts);
  const Tensors weights = w.to(rows.scalar_type()).unbind(0);
  Tensors made;
  for (size_t e = 0; e < weights.size(); ++e) {
    if (sorted.counts[e] > 0) made.push_back(at::linear(of_expert[e], weights[e]));
  }
  return made.empty() ? at::empty({0, w.size(1)}, rows.options()) : at::cat(made);
}

// W_in,e x_t of the sorted choices: [rows k, in]. Each row is copied for its choices and then moved, so that what comes
// back to it is a sum of k numbers in order, on every device.
at::Tensor plain_projected(const at::Tensor& x, const at::Tensor& chosen, const SortedChoices& sorted,
                           const at::Tensor& w_in) {
  const at::Tensor copies = x.unsqueeze(1).expand({x.size(0), chosen.size(1), x.size(1)});
  return times_of_expert(copies.reshape({chosen.numel(), x.size(1)}).index_select(0, sorted.order), sorted, w_in);
}

// active: [rows k, hidden], sorted.
at::Tensor plain_combined(const at::Tensor& active, const SortedChoices& sorted, const at::Tensor& weights,
                          const at::Tensor& w_out) {
  const at::Tensor out = times_of_expert(active, sorted, w_out).index_select(0, sorted.place);
  const at::Tensor weighted = out.view({weights.size(0), weights.size(1), w_out.size(1)}) * weights.unsqueeze(-1);
  return weighted.sum(1).to(active.scalar_type());
}

}  // namespace expert_detail

namespace plain {

at::Tensor expert_feed_forward(Activation kind, const at::Tensor& x, const at::Tensor& chosen,
                               const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out) {
  if (chosen.is_meta()) return at::empty_like(x);  // no counts to read
  const auto sorted = expert_detail::sort_choices(chosen, w_in.size(0));
  const at::Tensor active = activation(kind, expert_detail::plain_projected(x, chosen, sorted, w_in));
  return expert_detail::plain_combined(active, sorted, weights, w_out);
}

}  // namespace plain

// y, and the input projections of the rows sorted by expert (expert_groups.h): [rows k, in].
namespace expert_feed_forward_op {

using namespace expert_detail;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Wanted = std::array<bool, 4>;  // x, weights, w_in, w_out
using Made = std::tuple<at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

void check(const char* op, std::string_view kind, const at::Tensor& x, const at::Tensor& chosen,
           const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out) {
  const int64_t halves = activation_named(op, kind) == Activation::swiglu ? 2 : 1;
  const Arguments arguments(op, "x", x);
  arguments.rank("x", x, 2).rank("chosen", chosen, 2).rank("w_in", w_in, 3).rank("w_out", w_out, 3);
  const c10::SymInt rows = x.sym_size(0);
  const c10::SymInt width = x.sym_size(1);
  const c10::SymInt experts = w_in.sym_size(0);
  arguments.index_shape("chosen", chosen, {rows, chosen.sym_size(1)}).parameter("weights", weights, chosen.sym_sizes());
  arguments.parameter("w_out", w_out, {experts, width, w_out.sym_size(2)});
  Arguments(op, "w_out", w_out).shape("w_in", w_in, {experts, w_out.sym_size(2) * halves, width});
}

void check_backward(std::string_view kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& chosen,
                    const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out,
                    const at::Tensor& projected) {
  const char* const op = "expert_feed_forward_backward";
  check(op, kind, x, chosen, weights, w_in, w_out);
  Arguments(op, "x", x)
      .shape("dy", dy, x.sym_sizes())
      .shape("projected", projected, {chosen.sym_numel(), w_in.sym_size(1)});
}

// Without rows, choices or a hidden layer there is nothing for the kernels to write.
bool fused(const at::Tensor& x, const at::Tensor& chosen, const at::Tensor& w_out) {
  return use_fused_bfloat16("expert_feed_forward", {x}) && x.numel() > 0 && chosen.numel() > 0 && w_out.numel() > 0;
}

Made plain_forward(std::string_view kind, const at::Tensor& x, const at::Tensor& chosen, const at::Tensor& weights,
                   const at::Tensor& w_in, const at::Tensor& w_out) {
  check("expert_feed_forward", kind, x, chosen, weights, w_in, w_out);
  const OneThread one_thread;
  const SortedChoices sorted = sort_choices(chosen, w_in.size(0));
  const at::Tensor projected = plain_projected(x, chosen, sorted, w_in);
  const at::Tensor active = plain::activation(activation_named("expert_feed_forward", kind), projected);
  return {plain_combined(active, sorted, weights, w_out).contiguous(), projected.contiguous()};
}

Made fused_forward(std::string_view kind, const at::Tensor& x, const at::Tensor& chosen, const at::Tensor& weights,
                   const at::Tensor& w_in, const at::Tensor& w_out) {
  const char* const op = "expert_feed_forward";
  check(op, kind, x, chosen, weights, w_in, w_out);
  check_indices(op, "chosen", chosen, w_in.size(0));
  if (!fused(x, chosen, w_out)) return plain_forward(kind, x, chosen, weights, w_in, w_out);
  const auto [y, projected] = run_experts(activation_named(op, kind), {x, chosen, weights, w_in, w_out});
  return {y, projected};
}

// Meta kernels also make what the kernels hold meanwhile: models/pass_memory counts it.
Made meta_forward(std::string_view kind, const at::Tensor& x, const at::Tensor& chosen, const at::Tensor& weights,
                  const at::Tensor& w_in, const at::Tensor& w_out) {
  check("expert_feed_forward", kind, x, chosen, weights, w_in, w_out);
  const c10::SymInt rows = chosen.sym_numel();
  const at::Tensor packed = at::empty_symint({rows, x.sym_size(1)}, x.options());
  at::Tensor projected = at::empty_symint({rows, w_in.sym_size(1)}, x.options());
  const at::Tensor active = at::empty_symint({rows, w_out.sym_size(2)}, x.options());
  return {empty_dense(x), projected};
}

// -> dx, dweights, dw_in, dw_out
Gradients plain_backward(std::string_view kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& chosen,
                         const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out,
                         const at::Tensor& projected, Wanted wanted) {
  check_backward(kind, dy, x, chosen, weights, w_in, w_out, projected);
  const Activation which = activation_named("expert_feed_forward_backward", kind);
  const Tensors made = gradients_of(
      {x, weights, w_in, w_out}, {wanted[0], wanted[1], wanted[2], wanted[3]}, {dy}, [&](const Tensors& given) {
        return Tensors{plain::expert_feed_forward(which, given[0], chosen, given[1], given[2], given[3])};
      });
  return {made[0], made[1], made[2], made[3]};
}

Gradients fused_backward(std::string_view kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& chosen,
                         const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out,
                         const at::Tensor& projected, Wanted wanted) {
  const char* const op = "expert_feed_forward_backward";
  check_backward(kind, dy, x, chosen, weights, w_in, w_out, projected);
  check_indices(op, "chosen", chosen, w_in.size(0));
  if (!fused(x, chosen, w_out)) return plain_backward(kind, dy, x, chosen, weights, w_in, w_out, projected, wanted);
  const at::Tensor dw_in = wanted[2] ? at::zeros(w_in.sizes(), at::kFloat) : at::Tensor();
  const at::Tensor dw_out = wanted[3] ? at::zeros(w_out.sizes(), at::kFloat) : at::Tensor();
  const auto [dx, dweights] =
      run_experts_backward(activation_named(op, kind), {x, chosen, weights, w_in, w_out}, projected, dy, dw_in, dw_out);
  const at::ScalarType type = w_in.scalar_type();
  return {wanted[0] ? dx : no_gradient(x), wanted[1] ? dweights : no_gradient(x),
          wanted[2] ? dw_in.to(type) : no_gradient(x), wanted[3] ? dw_out.to(type) : no_gradient(x)};
}

Gradients meta_backward(std::string_view kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& chosen,
                        const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out,
                        const at::Tensor& projected, Wanted wanted) {
  check_backward(kind, dy, x, chosen, weights, w_in, w_out, projected);
  const c10::SymInt rows = chosen.sym_numel();
  const at::Tensor packed = at::empty_symint({rows * 3, x.sym_size(1)}, x.options());  // of dy, x and dx
  const at::Tensor active = at::empty_symint({rows, w_out.sym_size(2)}, x.options());
  const at::Tensor dprojected = empty_dense(projected);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] ? empty_dense(weights) : no_gradient(x),
          wanted[2] ? empty_dense(w_in) : no_gradient(x), wanted[3] ? empty_dense(w_out) : no_gradient(x)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, std::string_view kind, const at::Tensor& x,
                            const at::Tensor& chosen, const at::Tensor& weights, const at::Tensor& w_in,
                            const at::Tensor& w_out) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("expert_feed_forward_forward", fused_forward);
    const auto [y, projected] = op.call(kind, x, chosen, weights, w_in, w_out);
    context->save_for_backward({x, chosen, weights, w_in, w_out, projected});
    context->saved_data["kind"] = std::string(kind);
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const std::string kind = context->saved_data["kind"].toStringRef();
    const auto edges = wanted_gradients(context, {true, true, true, true, true});
    const Wanted wanted{edges[0], edges[2], edges[3], edges[4]};
    const bool in_place = (wanted[2] && adds_in_place(saved[3])) || (wanted[3] && adds_in_place(saved[4]));
    if (in_place && fused(saved[0], saved[1], saved[4])) return backward_in_place(kind, grads[0], saved, wanted);
    const BelowAutograd below;
    static const auto op = find_op("expert_feed_forward_backward", fused_backward);
    const auto [dx, dweights, dw_in, dw_out] =
        op.call(kind, grads[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5], wanted);
    return {at::Tensor(),
            if_wanted(wanted[0], dx),
            at::Tensor(),
            if_wanted(wanted[1], dweights),
            if_wanted(wanted[2], dw_in),
            if_wanted(wanted[3], dw_out)};
  }

 private:
  static tensor_list backward_in_place(const std::string& kind, const at::Tensor& dy, const tensor_list& saved,
                                       Wanted wanted) {
    const at::AutoDispatchBelowAutograd below;
    const auto place = [](bool want, const at::Tensor& weight) {
      if (!want) return at::Tensor();
      return adds_in_place(weight) ? weight.grad() : at::zeros(weight.sizes(), at::kFloat);
    };
    const at::Tensor dw_in = place(wanted[2], saved[3]);
    const at::Tensor dw_out = place(wanted[3], saved[4]);
    const auto [dx, dweights] =
        run_experts_backward(activation_named("expert_feed_forward", kind),
                             {saved[0], saved[1], saved[2], saved[3], saved[4]}, saved[5], dy, dw_in, dw_out);
    return {at::Tensor(),
            if_wanted(wanted[0], dx),
            at::Tensor(),
            if_wanted(wanted[1], dweights),
            adds_in_place(saved[3]) ? at::Tensor() : dw_in,
            adds_in_place(saved[4]) ? at::Tensor() : dw_out};
  }
};

at::Tensor pair(std::string_view kind, const at::Tensor& x, const at::Tensor& chosen, const at::Tensor& weights,
                const at::Tensor& w_in, const at::Tensor& w_out) {
  return Pair::apply(kind, dense_once(x), dense_once(chosen), dense_once(weights), w_in, w_out);
}

at::Tensor alone(std::string_view kind, const at::Tensor& x, const at::Tensor& chosen, const at::Tensor& weights,
                 const at::Tensor& w_in, const at::Tensor& w_out) {
  static const auto op = find_op("expert_feed_forward_forward", fused_forward);
  return std::get<0>(op.call(kind, x, chosen, weights, w_in, w_out));
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library,
              "expert_feed_forward(str kind, Tensor x, Tensor chosen, Tensor weights, Tensor w_in, Tensor w_out) -> "
              "Tensor",
              pair, alone);
  define_part(library,
              "expert_feed_forward_forward(str kind, Tensor x, Tensor chosen, Tensor weights, Tensor w_in, "
              "Tensor w_out) -> (Tensor y, Tensor projected)",
              plain_forward, fused_forward, meta_forward);
  define_part(library,
              "expert_feed_forward_backward(str kind, Tensor dy, Tensor x, Tensor chosen, Tensor weights, "
              "Tensor w_in, Tensor w_out, Tensor projected, bool[4] wanted) -> (Tensor dx, Tensor dweights, "
              "Tensor dw_in, Tensor dw_out)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace expert_feed_forward_op

at::Tensor expert_feed_forward(Activation kind, const at::Tensor& x, const at::Tensor& chosen,
                               const at::Tensor& weights, const at::Tensor& w_in, const at::Tensor& w_out) {
  const PartScope scope("part::experts");
  static const auto op = find_op("expert_feed_forward", expert_feed_forward_op::pair);
  return op.call(enum_text(kind), x, chosen, weights, w_in, w_out);
}

}  // namespace siamese::ops

#include "siamese/ops/route.h"

#include <algorithm>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/route.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {
namespace route_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
// weights, chosen, balance, z, counts
using Outputs = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
// and p [rows, E], n = log sum exp(logits) [rows]
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

void check(const char* op, const at::Tensor& logits, int64_t k) {
  const Arguments arguments(op, "logits", logits);
  arguments.rank("logits", logits, 2).require(k >= 1, "k", "at least 1", std::to_string(k));
  arguments.require(logits.sym_size(1) >= k, "logits", "at least k = " + std::to_string(k) + " columns",
                    "shape " + shape_text(logits.sym_sizes()));
}

void check_backward(const Optional& d_weights, const Optional& d_balance, const Optional& d_z, const at::Tensor& logits,
                    const at::Tensor& p, const at::Tensor& n, const at::Tensor& chosen, const at::Tensor& counts) {
  const Arguments arguments("route_backward", "logits", logits);
  arguments.rank("logits", logits, 2).index("chosen", chosen).rank("chosen", chosen, 2);
  const c10::SymInt rows = logits.sym_size(0);
  arguments.index_shape("chosen", chosen, {rows, chosen.sym_size(1)});
  arguments.require(chosen.sym_size(1) >= 1, "chosen", "at least one column", shape_text(chosen.sym_sizes()));
  arguments.shape("d_weights", or_undefined(d_weights), chosen.sym_sizes())
      .wide_shape("d_balance", or_undefined(d_balance), {})
      .wide_shape("d_z", or_undefined(d_z), {})
      .wide_shape("p", p, logits.sym_sizes())
      .wide_shape("n", n, {rows})
      .index_shape("counts", counts, {logits.sym_size(1)});
}

// What the sum over rows and experts of p_e counts_e is multiplied with: E / (rows k) / rows.
double balance_scale(int64_t rows, int64_t k, int64_t experts) {
  const auto most = static_cast<double>(std::max<int64_t>(1, rows));
  return static_cast<double>(experts) / (most * most * static_cast<double>(k));
}

// The differentiable part of the plain expression, of a choice that is made.
struct Weighed {
  at::Tensor weights, balance, z, p, n;
};

Weighed plain_weigh(const at::Tensor& logits, const at::Tensor& chosen, const at::Tensor& counts, bool renormalise) {
  const int64_t rows = logits.size(0);
  const at::Tensor p = at::softmax(wide(logits), -1);
  const at::Tensor n = log_sum_exp(wide(logits));
  at::Tensor weights = p.gather(1, chosen);
  if (renormalise) weights = weights / weights.sum(-1, true);
  const at::Tensor balance = plain::fixed_sum(p * counts.to(p.scalar_type()));
  const at::Tensor z = plain::fixed_sum(n.square());
  return {weights.to(logits.scalar_type()), balance * balance_scale(rows, chosen.size(1), logits.size(1)),
          z / static_cast<double>(std::max<int64_t>(1, rows)), p, n};
}

struct Choice {
  at::Tensor chosen, counts;
};

Choice plain_choose(const at::Tensor& logits, int64_t k) {
  const at::Tensor order = std::get<1>(logits.detach().sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true));
  const at::Tensor chosen = order.narrow(1, 0, k).contiguous();
  const at::Tensor flat = chosen.view({-1});
  return {chosen, at::zeros({logits.size(1)}, chosen.options()).scatter_add(0, flat, at::ones_like(flat))};
}

Made plain_forward(const at::Tensor& logits, int64_t k, bool renormalise) {
  check("route", logits, k);
  const OneThread one_thread;
  const auto [chosen, counts] = plain_choose(logits, k);
  const auto [weights, balance, z, p, n] = plain_weigh(logits, chosen, counts, renormalise);
  return {weights.contiguous(), chosen, balance, z, counts, p.contiguous(), n.contiguous()};
}

at::Tensor count_choices(const at::Tensor& chosen, int64_t experts) {
  at::Tensor counts = at::zeros({experts}, at::kLong);
  int64_t* const count = counts.mutable_data_ptr<int64_t>();
  const int64_t* const choice = chosen.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < chosen.numel(); ++i) ++count[choice[i]];
  return counts;
}

double balance_of(const at::Tensor& counts, const at::Tensor& sums, double scale) {
  double total = 0;
  for (int64_t e = 0; e < counts.numel(); ++e) {
    total +=
        static_cast<double>(counts.const_data_ptr<int64_t>()[e]) * static_cast<double>(sums.const_data_ptr<float>()[e]);
  }
  return total * scale;
}

Made fused_forward(const at::Tensor& given, int64_t k, bool renormalise) {
  check("route", given, k);
  if (given.numel() == 0 || !use_fused("route", {given})) return plain_forward(given, k, renormalise);
  const at::Tensor logits = given.contiguous();
  const int64_t rows = logits.size(0);
  const kernels::RouteShape shape{.experts = logits.size(1), .per_row = k, .renormalise = renormalise};
  at::Tensor p = at::empty_like(logits);
  at::Tensor n = at::empty({rows}, logits.options());
  at::Tensor chosen = at::empty({rows, k}, logits.options().dtype(at::kLong));
  at::Tensor weights = at::empty({rows, k}, logits.options());
  RowPartials partials(rows, shape.experts, 1);
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    kernels::route_forward(shape, logits.const_data_ptr<float>(), p.mutable_data_ptr<float>(),
                           n.mutable_data_ptr<float>(), chosen.mutable_data_ptr<int64_t>(),
                           weights.mutable_data_ptr<float>(), sums[0], begin, end);
  });
  at::Tensor counts = count_choices(chosen, shape.experts);
  const double balance = balance_of(counts, partials.total(0), balance_scale(rows, k, shape.experts));
  const double z = sum_squares(n) / static_cast<double>(rows);
  return {weights, chosen, at::scalar_tensor(balance, logits.options()), at::scalar_tensor(z, logits.options()), counts,
          p,       n};
}

Made meta_forward(const at::Tensor& logits, int64_t k, bool) {
  check("route", logits, k);
  const auto sums = logits.options().dtype(wide_type(logits));
  const auto indices = logits.options().dtype(at::kLong);
  const c10::SymInt rows = logits.sym_size(0);
  return {at::empty_symint({rows, k}, logits.options()),
          at::empty_symint({rows, k}, indices),
          at::empty({}, sums),
          at::empty({}, sums),
          at::empty_symint({logits.sym_size(1)}, indices),
          at::empty_symint(logits.sym_sizes(), sums),
          at::empty_symint({rows}, sums)};
}

at::Tensor plain_backward(const Optional& d_weights, const Optional& d_balance, const Optional& d_z,
                          const at::Tensor& logits, const at::Tensor& p, const at::Tensor& n, const at::Tensor& chosen,
                          const at::Tensor& counts, bool renormalise) {
  check_backward(d_weights, d_balance, d_z, logits, p, n, chosen, counts);
  const Tensors came = {or_undefined(d_weights), or_undefined(d_balance), or_undefined(d_z)};
  return gradients_of({logits}, {true}, came, [&](const Tensors& given) {
    const Weighed made = plain_weigh(given[0], chosen, counts, renormalise);
    return Tensors{made.weights, made.balance, made.z};
  })[0];
}

at::Tensor fused_backward(const Optional& d_weights, const Optional& d_balance, const Optional& d_z,
                          const at::Tensor& logits, const at::Tensor& given_p, const at::Tensor& given_n,
                          const at::Tensor& given_chosen, const at::Tensor& counts, bool renormalise) {
  check_backward(d_weights, d_balance, d_z, logits, given_p, given_n, given_chosen, counts);
  check_indices("route_backward", "chosen", given_chosen, logits.size(1));
  if (logits.numel() == 0 || !use_fused("route", {logits})) {
    return plain_backward(d_weights, d_balance, d_z, logits, given_p, given_n, given_chosen, counts, renormalise);
  }
  const at::Tensor p = given_p.contiguous();
  const at::Tensor n = given_n.contiguous();
  const at::Tensor chosen = given_chosen.contiguous();
  const at::Tensor dweights = d_weights.has_value() ? d_weights->contiguous() : at::Tensor();
  const int64_t rows = p.size(0);
  const kernels::RouteShape shape{.experts = p.size(1), .per_row = chosen.size(1), .renormalise = renormalise};
  const double outer = d_balance.has_value() ? d_balance->item<double>() : 0;
  const double scale = balance_scale(rows, shape.per_row, shape.experts) * outer;
  const at::Tensor dmean = (counts.to(at::kDouble) * scale).to(at::kFloat).contiguous();
  const double dz = d_z.has_value() ? d_z->item<double>() / static_cast<double>(rows) : 0;
  at::Tensor dlogits = at::empty_like(p);
  at::parallel_for(0, rows, row_grain(8 * shape.experts), [&](int64_t begin, int64_t end) {
    kernels::route_backward(shape, p.const_data_ptr<float>(), n.const_data_ptr<float>(),
                            chosen.const_data_ptr<int64_t>(), data_or_null(dweights), dmean.const_data_ptr<float>(), dz,
                            dlogits.mutable_data_ptr<float>(), begin, end);
  });
  return dlogits;
}

at::Tensor meta_backward(const Optional& d_weights, const Optional& d_balance, const Optional& d_z,
                         const at::Tensor& logits, const at::Tensor& p, const at::Tensor& n, const at::Tensor& chosen,
                         const at::Tensor& counts, bool) {
  check_backward(d_weights, d_balance, d_z, logits, p, n, chosen, counts);
  return empty_dense(logits);
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static tensor_list forward(AutogradContext* context, const at::Tensor& logits, int64_t k, bool renormalise) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("route_forward", fused_forward);
    const auto [weights, chosen, balance, z, counts, p, n] = op.call(logits, k, renormalise);
    context->save_for_backward({logits, p, n, chosen, counts});
    context->saved_data["renormalise"] = renormalise;
    context->mark_non_differentiable({chosen, counts});
    context->set_materialize_grads(false);
    return {weights, chosen, balance, z, counts};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (!grads[0].defined() && !grads[2].defined() && !grads[3].defined()) return tensor_list(3);
    const auto saved = context->get_saved_variables();
    const BelowAutograd below;
    static const auto op = find_op("route_backward", fused_backward);
    return {op.call(as_optional(grads[0]), as_optional(grads[2]), as_optional(grads[3]), saved[0], saved[1], saved[2],
                    saved[3], saved[4], context->saved_data["renormalise"].toBool()),
            at::Tensor(), at::Tensor()};
  }
};

Outputs pair(const at::Tensor& logits, int64_t k, bool renormalise) {
  const auto made = Pair::apply(logits, k, renormalise);
  return {made[0], made[1], made[2], made[3], made[4]};
}

Outputs alone(const at::Tensor& logits, int64_t k, bool renormalise) {
  static const auto op = find_op("route_forward", fused_forward);
  const auto [weights, chosen, balance, z, counts, p, n] = op.call(logits, k, renormalise);
  return {weights, chosen, balance, z, counts};
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library,
              "route(Tensor logits, int k, bool renormalise) -> (Tensor weights, Tensor chosen, Tensor balance, "
              "Tensor z, Tensor counts)",
              pair, alone);
  define_part(library,
              "route_forward(Tensor logits, int k, bool renormalise) -> (Tensor weights, Tensor chosen, "
              "Tensor balance, Tensor z, Tensor counts, Tensor p, Tensor n)",
              plain_forward, fused_forward, meta_forward);
  define_part(library,
              "route_backward(Tensor? d_weights, Tensor? d_balance, Tensor? d_z, Tensor logits, Tensor p, Tensor n, "
              "Tensor chosen, Tensor counts, bool renormalise) -> Tensor dlogits",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace route_op

namespace plain {

Routing route(const at::Tensor& logits, int64_t k, bool renormalise) {
  const auto [chosen, counts] = route_op::plain_choose(logits, k);
  const auto made = route_op::plain_weigh(logits, chosen, counts, renormalise);
  return {chosen, made.weights, made.balance, made.z, counts};
}

}  // namespace plain

Routing route(const at::Tensor& logits, int64_t k, bool renormalise) {
  const PartScope scope("part::router");
  static const auto op = find_op("route", route_op::pair);
  const auto [weights, chosen, balance, z, counts] = op.call(logits, k, renormalise);
  return {chosen, weights, balance, z, counts};
}

}  // namespace siamese::ops

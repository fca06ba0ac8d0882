#include "siamese/ops/route.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/base/check.h"
#include "siamese/kernels/route.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {
namespace route_detail {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

at::Tensor count_choices(const at::Tensor& chosen, int64_t experts) {
  at::Tensor counts = at::zeros({experts}, at::kLong);
  int64_t* const count = counts.mutable_data_ptr<int64_t>();
  const int64_t* const choice = chosen.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < chosen.numel(); ++i) ++count[choice[i]];
  return counts;
}

// What the sum over rows and experts of p_e counts_e is multiplied with: E / (rows k) / rows.
double balance_scale(int64_t rows, int64_t k, int64_t experts) {
  const auto most = static_cast<double>(std::max<int64_t>(1, rows));
  return static_cast<double>(experts) / (most * most * static_cast<double>(k));
}

double balance_of(const at::Tensor& counts, const at::Tensor& sums, double scale) {
  double total = 0;
  for (int64_t e = 0; e < counts.numel(); ++e) {
    total +=
        static_cast<double>(counts.const_data_ptr<int64_t>()[e]) * static_cast<double>(sums.const_data_ptr<float>()[e]);
  }
  return total * scale;
}

// Returns chosen, weights, balance, z, counts.
class FusedRoute : public torch::autograd::Function<FusedRoute> {
 public:
  static tensor_list forward(AutogradContext* context, const at::Tensor& given, int64_t k, bool renormalise) {
    const at::Tensor logits = given.contiguous();
    const int64_t rows = logits.size(0);
    const kernels::RouteShape shape{.experts = logits.size(1), .per_row = k, .renormalise = renormalise};
    at::Tensor p = at::empty_like(logits);
    at::Tensor normalizer = at::empty({rows}, logits.options());
    at::Tensor chosen = at::empty({rows, k}, logits.options().dtype(at::kLong));
    at::Tensor weights = at::empty({rows, k}, logits.options());
    RowPartials partials(rows, shape.experts, 1);
    partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
      kernels::route_forward(shape, logits.const_data_ptr<float>(), p.mutable_data_ptr<float>(),
                             normalizer.mutable_data_ptr<float>(), chosen.mutable_data_ptr<int64_t>(),
                             weights.mutable_data_ptr<float>(), sums[0], begin, end);
    });
    at::Tensor counts = count_choices(chosen, shape.experts);
    const double balance = balance_of(counts, partials.total(0), balance_scale(rows, k, shape.experts));
    const double z = sum_squares(normalizer) / static_cast<double>(rows);
    context->save_for_backward({p, normalizer, chosen, counts});
    context->saved_data["renormalise"] = renormalise;
    context->mark_non_differentiable({chosen, counts});
    return {chosen, weights, at::scalar_tensor(balance, logits.options()), at::scalar_tensor(z, logits.options()),
            counts};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& p = saved[0];
    const int64_t rows = p.size(0);
    const kernels::RouteShape shape{
        .experts = p.size(1), .per_row = saved[2].size(1), .renormalise = context->saved_data["renormalise"].toBool()};
    const double scale = balance_scale(rows, shape.per_row, shape.experts) * grads[2].item<double>();
    const at::Tensor dmean = (saved[3].to(at::kDouble) * scale).to(at::kFloat);
    const double dz = grads[3].item<double>() / static_cast<double>(rows);
    const at::Tensor dweights = grads[1].contiguous();
    at::Tensor dlogits = at::empty_like(p);
    at::parallel_for(0, rows, row_grain(8 * shape.experts), [&](int64_t begin, int64_t end) {
      kernels::route_backward(shape, p.const_data_ptr<float>(), saved[1].const_data_ptr<float>(),
                              saved[2].const_data_ptr<int64_t>(), dweights.const_data_ptr<float>(),
                              dmean.const_data_ptr<float>(), dz, dlogits.mutable_data_ptr<float>(), begin, end);
    });
    return {dlogits, at::Tensor(), at::Tensor()};
  }
};

}  // namespace route_detail

namespace plain {

Routing route(const at::Tensor& logits, int64_t k, bool renormalise) {
  const int64_t rows = logits.size(0);
  const int64_t experts = logits.size(1);
  const at::Tensor p = at::softmax(logits, -1);
  const at::Tensor order = std::get<1>(logits.detach().sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true));
  const at::Tensor chosen = order.narrow(1, 0, k).contiguous();
  at::Tensor weights = p.gather(1, chosen);
  if (renormalise) weights = weights / weights.sum(-1, true);
  const at::Tensor counts = route_detail::count_choices(chosen, experts);
  const at::Tensor balance =
      plain::fixed_sum(p * counts.to(p.scalar_type())) * route_detail::balance_scale(rows, k, experts);
  const at::Tensor z =
      plain::fixed_sum(at::logsumexp(logits, {-1}).square()) / static_cast<double>(std::max<int64_t>(1, rows));
  return {chosen, weights, balance, z, counts};
}

}  // namespace plain

Routing route(const at::Tensor& logits, int64_t k, bool renormalise) {
  const PartScope scope("part::router");
  SIAMESE_INVARIANT(logits.dim() == 2 && k >= 1 && k <= logits.size(1));
  if (logits.numel() == 0 || !use_fused("route", {logits})) {
    const Tensors made = all_on_one_thread({logits}, [&](const Tensors& given) {
      const Routing routing = plain::route(given[0], k, renormalise);
      return Tensors{routing.chosen, routing.weights, routing.balance, routing.z, routing.counts};
    });
    return {made[0], made[1], made[2], made[3], made[4]};
  }
  const auto made = route_detail::FusedRoute::apply(logits, k, renormalise);
  return {made[0], made[1], made[2], made[3], made[4]};
}

}  // namespace siamese::ops

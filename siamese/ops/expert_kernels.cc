#include "siamese/ops/expert_kernels.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/expert_products.h"
#include "siamese/kernels/expert_rows.h"
#include "siamese/kernels/outer_products.h"
#include "siamese/kernels/partition.h"
#include "siamese/ops/expert_groups.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {
namespace expert_kernels_detail {

// One product for every expert: `outputs` columns of a result, or rows of a weight's gradient, each of `terms`
// multiply-adds for a row of the expert.
struct Work {
  int64_t outputs;
  int64_t terms;
};

// Outputs of one expert in one of the products: a task.
struct OutputRange {
  size_t of;
  int64_t expert;
  int64_t begin;
  int64_t end;
};

// Some tasks for each thread, so that threads end together; each packs the expert's rows, so not many, and none of few
// outputs. How the outputs are cut changes no bit of them (kernels/expert_products.h, kernels/outer_products.h).
std::vector<OutputRange> cut_outputs(const std::vector<Work>& products, const at::Tensor& first) {
  constexpr int64_t kTasks = 8;  // of a thread
  constexpr int64_t kFewOutputs = 256;
  constexpr int64_t kUnit = kernels::kExpertRange;
  const int64_t* const begin = first.const_data_ptr<int64_t>();
  const int64_t experts = first.numel() - 1;
  int64_t total = 0;
  for (const Work& product : products) total += begin[experts] * product.outputs * product.terms;
  const int64_t task = std::max<int64_t>(1, total / (kTasks * at::get_num_threads()));
  std::vector<OutputRange> tasks;
  for (size_t of = 0; of < products.size(); ++of) {
    const Work& product = products[of];
    const int64_t units = (product.outputs + kUnit - 1) / kUnit;
    const int64_t most = std::max<int64_t>(1, product.outputs / kFewOutputs);
    for (int64_t e = 0; e < experts; ++e) {
      const int64_t work = (begin[e + 1] - begin[e]) * product.outputs * product.terms;
      const kernels::Partition parts{units, std::min((work + task - 1) / task, most)};
      for (int64_t i = 0; i < parts.parts; ++i) {
        tasks.push_back({of, e, parts.begin(i) * kUnit, std::min(product.outputs, parts.end(i) * kUnit)});
      }
    }
  }
  return tasks;
}

// body(task, first row of its expert, rows) for each task.
template <class Body>
void for_each_range(const std::vector<Work>& products, const at::Tensor& first, const Body& body) {
  const PartScope scope("part::linear");
  const auto tasks = cut_outputs(products, first);
  const int64_t* const begin = first.const_data_ptr<int64_t>();
  for_each_task(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const OutputRange& task = tasks[static_cast<size_t>(i)];
    body(task, begin[task.expert], begin[task.expert + 1] - begin[task.expert]);
  });
}

// y = x w^T for the packed rows of each expert.
void multiply_transposed(const at::Tensor& x, const at::Tensor& w, const at::Tensor& first, const at::Tensor& y) {
  const int64_t out = w.size(1);
  const int64_t in = w.size(2);
  for_each_range({{out, in}}, first, [&](const OutputRange& task, int64_t row, int64_t rows) {
    const at::Tensor scratch = at::empty({kernels::expert_times_transposed_scratch(rows, in)}, at::kFloat);
    with_element_type(x, [&](auto element) {
      using T = decltype(element);
      kernels::expert_times_transposed(data_of<T>(x) + row * in, data_of<T>(w) + task.expert * out * in,
                                       writable_of<T>(y) + row * out, rows, in, out, task.begin, task.end,
                                       scratch.mutable_data_ptr<float>());
    });
  });
}

// x = y w
void multiply(const at::Tensor& y, const at::Tensor& w, const at::Tensor& first, const at::Tensor& x) {
  const int64_t out = w.size(1);
  const int64_t in = w.size(2);
  for_each_range({{in, out}}, first, [&](const OutputRange& task, int64_t row, int64_t rows) {
    const at::Tensor scratch = at::empty({kernels::expert_times_scratch(rows, out)}, at::kFloat);
    with_element_type(x, [&](auto element) {
      using T = decltype(element);
      kernels::expert_times(data_of<T>(y) + row * out, data_of<T>(w) + task.expert * out * in,
                            writable_of<T>(x) + row * in, rows, out, in, task.begin, task.end,
                            scratch.mutable_data_ptr<float>());
    });
  });
}

// Packed rows of `x`, times their factors if there are any.
at::Tensor gather(const at::Tensor& x, const ExpertGroups& groups, const at::Tensor& factors) {
  const int64_t cols = x.size(1);
  at::Tensor packed = at::empty({groups.source.numel(), cols}, x.options());
  at::parallel_for(0, packed.size(0), row_grain(cols), [&](int64_t begin, int64_t end) {
    with_element_type(x, [&](auto element) {
      using T = decltype(element);
      kernels::gather_rows(data_of<T>(x), groups.source.const_data_ptr<int64_t>(), data_or_null(factors),
                           writable_of<T>(packed), begin, end, cols);
    });
  });
  return packed;
}

void combine(const at::Tensor& packed, const at::Tensor& place, const at::Tensor& weights, const at::Tensor& y) {
  const int64_t cols = y.size(1);
  at::parallel_for(0, y.size(0), row_grain(cols), [&](int64_t begin, int64_t end) {
    with_element_type(y, [&](auto element) {
      using T = decltype(element);
      kernels::combine_rows(data_of<T>(packed), place.const_data_ptr<int64_t>(), weights.const_data_ptr<float>(),
                            writable_of<T>(y), begin, end, place.size(1), cols);
    });
  });
}

// The weight of each packed row.
at::Tensor packed_weights(const at::Tensor& weights, const at::Tensor& place) {
  at::Tensor packed = at::empty({place.numel()}, weights.options());
  const int64_t* const at = place.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < place.numel(); ++i) {
    packed.mutable_data_ptr<float>()[at[i]] = weights.const_data_ptr<float>()[i];
  }
  return packed;
}

// The gradient of every expert's weight in x w^T: dw[e] += dy^T x over the expert's rows.
struct WeightGradient {
  at::Tensor dy;
  at::Tensor x;
  at::Tensor dw;
};

void add_weight_gradients(const std::vector<WeightGradient>& gradients, const at::Tensor& first) {
  std::vector<Work> products;
  for (const auto& gradient : gradients) products.push_back({gradient.dw.size(1), gradient.dw.size(2)});
  for_each_range(products, first, [&](const OutputRange& task, int64_t row, int64_t rows) {
    const WeightGradient& gradient = gradients[task.of];
    const auto [out, in] = products[task.of];
    const at::Tensor scratch = at::empty({kernels::outer_products_scratch(rows, out, in)}, at::kFloat);
    with_element_type(gradient.x, [&, out = out, in = in](auto element) {
      using T = decltype(element);
      kernels::add_outer_products(data_of<T>(gradient.dy) + row * out, data_of<T>(gradient.x) + row * in,
                                  gradient.dw.mutable_data_ptr<float>() + task.expert * out * in, rows, out, in,
                                  task.begin, task.end, scratch.mutable_data_ptr<float>());
    });
  });
}

at::Tensor activate(Activation kind, const at::Tensor& projected, int64_t hidden) {
  const PartScope scope("part::activation");
  at::Tensor active = at::empty({projected.size(0), hidden}, projected.options());
  at::parallel_for(0, active.size(0), row_grain(hidden), [&](int64_t begin, int64_t end) {
    with_element_type(active, [&](auto element) {
      using T = decltype(element);
      kernels::activation_forward(kind, data_of<T>(projected), writable_of<T>(active), begin, end, hidden);
    });
  });
  return active;
}

// What backward makes of the packed rows behind the activation.
struct ActivationGradient {
  at::Tensor projected;  // without the row's weight
  at::Tensor active;     // the activation once more, times the row's weight; in place of its gradient
  at::Tensor weights;    // [rows k]
};

// dy . out = (dy W_out) . active: the gradient of a row's weight without its output. dactive = dy W_out of the packed
// rows, without their weight.
ActivationGradient activate_backward(Activation kind, const at::Tensor& projected, const at::Tensor& dactive,
                                     const at::Tensor& factors) {
  const PartScope scope("part::activation");
  const int64_t hidden = dactive.size(1);
  const ActivationGradient made{at::empty_like(projected), dactive, at::empty({dactive.size(0)}, at::kFloat)};
  constexpr int64_t kRows = 16;  // at a time, while they stay in cache
  at::parallel_for(0, dactive.size(0), std::max(kRows, row_grain(hidden)), [&](int64_t begin, int64_t end) {
    const at::Tensor copy = at::empty({kRows, hidden}, dactive.options());
    with_element_type(dactive, [&](auto element) {
      using T = decltype(element);
      for (int64_t row = begin; row < end; row += kRows) {
        const int64_t rows = std::min(kRows, end - row);
        T* const active = writable_of<T>(made.active) + row * hidden;
        std::copy(active, active + rows * hidden, writable_of<T>(copy));
        kernels::activation_backward(kind, data_of<T>(projected) + row * projected.size(1), data_of<T>(copy),
                                     writable_of<T>(made.projected) + row * projected.size(1), active, 0, rows, hidden);
        kernels::weigh_rows(data_of<T>(copy), active, factors.const_data_ptr<float>() + row,
                            made.weights.mutable_data_ptr<float>() + row, 0, rows, hidden);
      }
    });
  });
  return made;
}

}  // namespace expert_kernels_detail

ExpertOutputs run_experts(Activation kind, const ExpertInputs& inputs) {
  using namespace expert_kernels_detail;
  const auto& [given, chosen, given_weights, w_in, w_out] = inputs;
  const at::Tensor x = given.contiguous();
  const at::Tensor weights = wide(given_weights).contiguous();
  const ExpertGroups groups = group_by_expert(chosen.contiguous(), w_in.size(0));
  const at::Tensor packed = gather(x, groups, at::Tensor());  // first of x, then of y
  at::Tensor projected = at::empty({packed.size(0), w_in.size(1)}, x.options());
  multiply_transposed(packed, weight_operand(w_in, x).contiguous(), groups.first, projected);
  multiply_transposed(activate(kind, projected, w_out.size(2)), weight_operand(w_out, x).contiguous(), groups.first,
                      packed);
  at::Tensor y = at::empty_like(x);
  combine(packed, groups.place, weights, y);
  return {y, projected};
}

ExpertRowGradients run_experts_backward(Activation kind, const ExpertInputs& inputs, const at::Tensor& projected,
                                        const at::Tensor& given_dy, const at::Tensor& dw_in, const at::Tensor& dw_out) {
  using namespace expert_kernels_detail;
  const at::Tensor x = inputs.x.contiguous();
  const at::Tensor weights = wide(inputs.weights).contiguous();
  const ExpertGroups groups = group_by_expert(inputs.chosen.contiguous(), inputs.w_in.size(0));
  const at::Tensor factors = packed_weights(weights, groups.place);
  const at::Tensor dy = gather(given_dy.contiguous(), groups, at::Tensor());
  const at::Tensor dactive = at::empty({dy.size(0), inputs.w_out.size(2)}, x.options());
  multiply(dy, weight_operand(inputs.w_out, x).contiguous(), groups.first, dactive);
  const ActivationGradient inner = activate_backward(kind, projected.contiguous(), dactive, factors);
  std::vector<WeightGradient> sums;
  if (dw_out.defined()) sums.push_back({dy, inner.active, dw_out});
  if (dw_in.defined()) sums.push_back({inner.projected, gather(x, groups, factors), dw_in});
  add_weight_gradients(sums, groups.first);
  const at::Tensor packed_dx = at::empty_like(dy);
  multiply(inner.projected, weight_operand(inputs.w_in, x).contiguous(), groups.first, packed_dx);
  at::Tensor dx = at::empty_like(x);
  combine(packed_dx, groups.place, weights, dx);
  return {
      dx,
      inner.weights.index_select(0, groups.place.view({-1})).view(weights.sizes()).to(inputs.weights.scalar_type())};
}

}  // namespace siamese::ops

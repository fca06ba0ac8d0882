#include "siamese/ops/expert_kernels.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/expert_rows.h"
#include "siamese/kernels/outer_products.h"
#include "siamese/ops/expert_groups.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/product.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {
namespace expert_kernels_detail {

// Rows of a task: enough for a product to be fast, and what it makes stays in the second cache.
constexpr int64_t kBlockRows = 256;

at::Tensor rows_of(const at::Tensor& packed, const ExpertBlock& block) {
  return packed.narrow(0, block.begin, block.rows);
}

// Whether ops/product.h has a faster product than one straight into its place; of bfloat16 it has the only one whose
// sums are floats.
bool worth_a_copy(const at::Tensor& to, const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 || to.numel() * x.size(1) >= int64_t{1} << 24;  // multiply-adds
}

// to = x w^T
void multiply_transposed(const at::Tensor& to, const at::Tensor& x, const at::Tensor& w) {
  at::Tensor out = to;
  worth_a_copy(to, x) ? out.copy_(times_transposed(x, w)) : at::mm_out(out, x, w.t());
}

// to = y w
void multiply(const at::Tensor& to, const at::Tensor& y, const at::Tensor& w) {
  at::Tensor out = to;
  worth_a_copy(to, y) ? out.copy_(times(y, w)) : at::mm_out(out, y, w);
}

// The rows of a block of `x`, times their factors if there are any, into the rows of `packed`.
void gather(const at::Tensor& x, const ExpertGroups& groups, const at::Tensor& factors, const at::Tensor& packed,
            const ExpertBlock& block) {
  const float* const factor = factors.defined() ? factors.const_data_ptr<float>() + block.begin : nullptr;
  with_element_type(x, [&](auto element) {
    using T = decltype(element);
    kernels::gather_rows(data_of<T>(x), groups.source.const_data_ptr<int64_t>() + block.begin, factor,
                         writable_of<T>(packed), 0, block.rows, x.size(1));
  });
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

// What backward makes of the packed rows on its way to the weights' gradients.
struct PackedRows {
  at::Tensor x;           // times the row's weight
  at::Tensor dy;          // without it
  at::Tensor active;      // times the row's weight
  at::Tensor dprojected;  // without it
  at::Tensor dx;          // without it
  at::Tensor dweights;    // [rows k]
};

// The gradient of every expert's weight in x w^T: dw[e] += dy^T x over the expert's rows.
struct WeightGradient {
  at::Tensor dy;
  at::Tensor x;
  at::Tensor dw;
};

// Outputs of one expert's weight gradient: a task.
struct OutputRange {
  size_t of;
  int64_t expert;
  int64_t begin;
  int64_t end;
};

// Four tasks a thread where the experts are even, so that threads end together; each packs its x, so no more. How the
// outputs are cut changes no bit of them (kernels/outer_products.h).
std::vector<OutputRange> cut_outputs(const std::vector<WeightGradient>& gradients, const int64_t* first) {
  int64_t total = 0;
  for (const auto& gradient : gradients) total += gradient.x.numel() * gradient.dw.size(1);
  constexpr int64_t kLeast = int64_t{1} << 22;  // multiply-adds
  const int64_t task = std::max(kLeast, total / (4 * at::get_num_threads()));
  std::vector<OutputRange> tasks;
  for (size_t of = 0; of < gradients.size(); ++of) {
    const at::Tensor& dw = gradients[of].dw;
    for (int64_t e = 0; e < dw.size(0); ++e) {
      const int64_t work = (first[e + 1] - first[e]) * dw.size(1) * dw.size(2);
      const kernels::Partition parts{dw.size(1), std::min((work + task - 1) / task, dw.size(1))};
      for (int64_t i = 0; i < parts.parts; ++i) tasks.push_back({of, e, parts.begin(i), parts.end(i)});
    }
  }
  return tasks;
}

void add_weight_gradients(const std::vector<WeightGradient>& gradients, const at::Tensor& first) {
  const PartScope scope("part::linear");
  const int64_t* const begin = first.const_data_ptr<int64_t>();
  const auto tasks = cut_outputs(gradients, begin);
  for_each_task(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const OutputRange& task = tasks[static_cast<size_t>(i)];
    const WeightGradient& gradient = gradients[task.of];
    const int64_t out = gradient.dw.size(1);
    const int64_t in = gradient.dw.size(2);
    const int64_t row = begin[task.expert];
    const int64_t rows = begin[task.expert + 1] - row;
    const at::Tensor scratch = at::empty({kernels::outer_products_scratch(rows, out, in)}, at::kFloat);
    with_element_type(gradient.x, [&](auto element) {
      using T = decltype(element);
      kernels::add_outer_products(data_of<T>(gradient.dy) + row * out, data_of<T>(gradient.x) + row * in,
                                  gradient.dw.mutable_data_ptr<float>() + task.expert * out * in, rows, out, in,
                                  task.begin, task.end, scratch.mutable_data_ptr<float>());
    });
  });
}

// dy . out = (dy W_out) . active: the gradient of a row's weight without its output.
PackedRows packed_backward(Activation kind, const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weights,
                           const at::Tensor& projected, const at::Tensor& w_in, const at::Tensor& w_out,
                           const ExpertGroups& groups) {
  const at::Tensor factors = packed_weights(weights, groups.place);
  const int64_t count = factors.numel();
  const int64_t hidden = w_out.size(2);
  const at::Tensor like_x = at::empty({3, count, x.size(1)}, x.options());
  const PackedRows rows{like_x[0],
                        like_x[1],
                        at::empty({count, hidden}, x.options()),
                        at::empty_like(projected),
                        like_x[2],
                        at::empty({count}, at::kFloat)};
  const auto blocks = expert_blocks(groups.first, kBlockRows);
  for_each_task(static_cast<int64_t>(blocks.size()), [&](int64_t i) {
    const ExpertBlock& block = blocks[static_cast<size_t>(i)];
    const at::Tensor block_dy = rows_of(rows.dy, block);
    const at::Tensor active = rows_of(rows.active, block);
    const at::Tensor dprojected = rows_of(rows.dprojected, block);
    gather(dy, groups, at::Tensor(), block_dy, block);
    const at::Tensor dactive = at::empty({block.rows, hidden}, x.options());
    multiply(dactive, block_dy, w_out[block.expert]);
    with_element_type(x, [&](auto element) {
      using T = decltype(element);
      kernels::activation_backward(kind, data_of<T>(rows_of(projected, block)), data_of<T>(dactive),
                                   writable_of<T>(dprojected), writable_of<T>(active), 0, block.rows, hidden);
      kernels::weigh_rows(data_of<T>(dactive), writable_of<T>(active), factors.const_data_ptr<float>() + block.begin,
                          rows.dweights.mutable_data_ptr<float>() + block.begin, 0, block.rows, hidden);
    });
    multiply(rows_of(rows.dx, block), dprojected, w_in[block.expert]);
    gather(x, groups, factors, rows_of(rows.x, block), block);
  });
  return rows;
}

}  // namespace expert_kernels_detail

ExpertOutputs run_experts(Activation kind, const ExpertInputs& inputs) {
  using namespace expert_kernels_detail;
  const auto& [given, chosen, given_weights, w_in, w_out] = inputs;
  const at::Tensor x = given.contiguous();
  const at::Tensor weights = wide(given_weights).contiguous();
  const at::Tensor operand_in = weight_operand(w_in, x);
  const at::Tensor operand_out = weight_operand(w_out, x);
  const ExpertGroups groups = group_by_expert(chosen.contiguous(), w_in.size(0));
  const int64_t packed_rows = chosen.numel();
  const int64_t hidden = w_out.size(2);
  const at::Tensor projected = at::empty({packed_rows, w_in.size(1)}, x.options());
  const at::Tensor packed = at::empty({packed_rows, x.size(1)}, x.options());
  const auto blocks = expert_blocks(groups.first, kBlockRows);
  for_each_task(static_cast<int64_t>(blocks.size()), [&](int64_t i) {
    const ExpertBlock& block = blocks[static_cast<size_t>(i)];
    const at::Tensor out = rows_of(packed, block);  // first of x, then of y
    const at::Tensor inner = rows_of(projected, block);
    gather(x, groups, at::Tensor(), out, block);
    multiply_transposed(inner, out, operand_in[block.expert]);
    const at::Tensor active = at::empty({block.rows, hidden}, x.options());
    with_element_type(x, [&](auto element) {
      using T = decltype(element);
      kernels::activation_forward(kind, data_of<T>(inner), writable_of<T>(active), 0, block.rows, hidden);
    });
    multiply_transposed(out, active, operand_out[block.expert]);
  });
  at::Tensor y = at::empty_like(x);
  combine(packed, groups.place, weights, y);
  return {y, projected};
}

ExpertRowGradients run_experts_backward(Activation kind, const ExpertInputs& inputs, const at::Tensor& projected,
                                        const at::Tensor& dy, const at::Tensor& dw_in, const at::Tensor& dw_out) {
  using namespace expert_kernels_detail;
  const at::Tensor x = inputs.x.contiguous();
  const at::Tensor weights = wide(inputs.weights).contiguous();
  const ExpertGroups groups = group_by_expert(inputs.chosen.contiguous(), inputs.w_in.size(0));
  const PackedRows rows = packed_backward(kind, dy.contiguous(), x, weights, projected.contiguous(),
                                          weight_operand(inputs.w_in, x), weight_operand(inputs.w_out, x), groups);
  std::vector<WeightGradient> sums;
  if (dw_out.defined()) sums.push_back({rows.dy, rows.active, dw_out});
  if (dw_in.defined()) sums.push_back({rows.dprojected, rows.x, dw_in});
  add_weight_gradients(sums, groups.first);
  at::Tensor dx = at::empty_like(x);
  combine(rows.dx, groups.place, weights, dx);
  return {
      dx,
      rows.dweights.index_select(0, groups.place.view({-1})).view(weights.sizes()).to(inputs.weights.scalar_type())};
}

}  // namespace siamese::ops

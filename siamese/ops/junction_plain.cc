// The meaning of a junction, in LibTorch's own operators. The letters are those of ops/junction.h.
#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/ops/junction_kernels.h"
#include "siamese/ops/library.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/norm_statistics.h"
#include "siamese/ops/plain_gradient.h"

namespace siamese::ops {
namespace junction_op {

at::Tensor plain_norm(const PerSlot& given, const JunctionPlan& plan, NormOf norm, const at::Tensor& value) {
  if (!plan.norms[norm]) return value;
  const at::Tensor& gain = given[gain_of(norm)];
  if (!plan.layer[norm]) return plain::rms_norm(value, gain, plan.eps[norm]);
  return plain::layer_norm(value, gain, given[bias_of(norm)], plan.eps[norm]);
}

struct Values {
  at::Tensor u, v, x, merged, input;
};

Values from_sums(const PerSlot& given, const JunctionPlan& plan, const at::Tensor& u, const at::Tensor& v) {
  Values made{.u = u, .v = v, .x = {}, .merged = plain_norm(given, plan, kOfY, v), .input = {}};
  if (plan.has_x) {
    made.x = plain_norm(given, plan, kOfX, u);
    made.merged = (given[kXScale].defined() ? given[kXScale] * made.x : made.x) + made.merged;
  }
  made.input = plain_norm(given, plan, kOfInput, made.merged);
  if (plan.input_scale != 1) made.input = made.input * plan.input_scale;
  if (plan.half_input) made.input = made.input.to(at::kBFloat16);
  return made;
}

// [samples, cols] against [samples, ..., cols].
at::Tensor gate_of_rows(at::Tensor gate, const at::Tensor& rows) {
  while (gate.dim() < rows.dim()) gate = gate.unsqueeze(1);
  return gate;
}

// gate R(z)
at::Tensor plain_branch(const PerSlot& given, const JunctionPlan& plan, at::ScalarType type) {
  const at::Tensor normed = plain_norm(given, plan, kOfBranch, given[kBranch].to(type));
  return plan.has_gate ? gate_of_rows(given[kGate], normed) * normed : normed;
}

Values all_values(const PerSlot& given, const JunctionPlan& plan) {
  at::Tensor u = given[kX];
  at::Tensor v = plan.y_skip != 1 ? given[kY] * plan.y_skip : given[kY];
  if (plan.has_branch) {
    const at::Tensor b = plain_branch(given, plan, given[kY].scalar_type());
    if (plan.adds_to_x()) u = at::add(u, b, plan.x_branch);
    if (plan.y_branch != 0) v = at::add(v, b, plan.y_branch);
  }
  return from_sums(given, plan, u, v);
}

Made plain_forward(const PerSlot& given, const JunctionPlan& plan) {
  check_tensors("junction", given, plan);
  const OneThread one_thread;
  const at::Tensor& y = given[kY];
  const Values made = all_values(given, plan);
  const at::Tensor branch = plan.has_branch ? given[kBranch].to(y.scalar_type()) : at::Tensor();
  const std::array<at::Tensor, kNorms> normed = {branch, made.u, made.v, made.merged};
  std::vector<at::Tensor> statistics;
  for (size_t norm = 0; norm < kNorms; ++norm) {
    if (!plan.norms[norm]) continue;
    for (const auto& row : plain::norm_statistics(normed[norm], plan.layer[norm], plan.eps[norm])) {
      statistics.push_back(row);
    }
  }
  const auto if_made = [&](bool is_made, const at::Tensor& value) {
    return is_made ? value.contiguous() : no_gradient(y);
  };
  return {if_made(plan.makes_y_sum(), made.v), if_made(plan.makes_x_out(), made.x),
          if_made(plan.makes_input(), made.input), if_made(plan.makes_x_sum(), made.u),
          statistics.empty() ? at::empty_symint(plan.statistics_shape(y), y.options())
                             : at::stack(statistics).contiguous()};
}

// dU and dV, in the places of x and y, with the gradients of all but the branch, its norm and its gate.
PerSlot gradients_of_sums(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted) {
  const Tensors inputs(returning.saved.begin() + kX, returning.saved.end());
  const std::vector<bool> wanted_ones(wanted.begin() + kX, wanted.end());
  const Tensors found = gradients_of(inputs, wanted_ones, {returning.d_x_out, returning.d_y_sum, returning.d_input},
                                     [&](const Tensors& in) {
                                       PerSlot given;
                                       std::copy(in.begin(), in.end(), given.begin() + kX);
                                       const Values made = from_sums(given, plan, given[kX], given[kY]);
                                       return Tensors{made.x, made.v, made.input};
                                     });
  PerSlot gradients;
  std::copy(found.begin(), found.end(), gradients.begin() + kX);
  return gradients;
}

// From db, what comes back to b, to the branch, its norm and its gate.
void branch_gradients(const at::Tensor& db, const PerSlot& saved, const JunctionPlan& plan, const Wanted& wanted,
                      PerSlot& gradients) {
  if (!plan.norms[kOfBranch] && !wanted[kGate]) {  // z need not be there
    const at::Tensor dz = plan.has_gate ? db * gate_of_rows(saved[kGate], db) : db;
    gradients[kBranch] = plan.half_branch ? dz.to(at::kBFloat16) : dz;
    return;
  }
  const std::array<size_t, 4> slots = {kBranch, gain_of(kOfBranch), bias_of(kOfBranch), kGate};
  Tensors inputs;
  std::vector<bool> wanted_ones;
  for (const size_t slot : slots) {
    inputs.push_back(saved[slot]);
    wanted_ones.push_back(wanted[slot]);
  }
  const Tensors found = gradients_of(inputs, wanted_ones, {db}, [&](const Tensors& in) {
    PerSlot given;
    for (size_t i = 0; i < slots.size(); ++i) given[slots[i]] = in[i];
    return Tensors{plain_branch(given, plan, db.scalar_type())};
  });
  for (size_t i = 0; i < slots.size(); ++i) gradients[slots[i]] = found[i];
}

// In two steps, as the kernel goes: first to the sums U and V, then to the branch. So x and y need not be kept.
PerSlot plain_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& given_wanted) {
  check_returning(returning, plan);
  const OneThread one_thread;
  const Wanted wanted = plan.within(given_wanted, returning.saved);
  Wanted needed = wanted;
  if (reaches_branch(wanted)) {
    needed[kX] = plan.has_x;
    needed[kY] = true;
  }
  PerSlot gradients = gradients_of_sums(returning, plan, needed);
  if (reaches_branch(wanted)) {
    at::Tensor db = gradients[kY] * plan.y_branch;
    if (plan.has_x) db = at::add(db, gradients[kX], plan.x_branch);
    branch_gradients(db, returning.saved, plan, wanted, gradients);
  }
  if (wanted[kY] && plan.y_skip != 1) gradients[kY] = gradients[kY] * plan.y_skip;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (!wanted[slot]) gradients[slot] = at::Tensor();
  }
  return gradients;
}

}  // namespace junction_op

namespace plain {

JunctionResult junction(const Junction& j) {
  const junction_op::Values made = junction_op::all_values(junction_op::tensors_of(j), junction_op::plan_of(j));
  return {.x = made.x, .y = made.v, .input = made.input, .x_sum = made.u};
}

}  // namespace plain

}  // namespace siamese::ops

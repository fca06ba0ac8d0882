// The op junction: schema, autograd pair, C++ call. The mathematics is in ops/junction.h, the letters are from there.
//
//   junction_forward    z, x, y, scale, gains, gate -> V, X, input, U, statistics       what is not made: no elements
//   junction_backward   dV, dX, dinput, z, U, V, scale, gains, statistics, gate -> gradients, in forward's order
//   junction            the pair: V, X, input and, where X has a norm, U, which carries no gradient
//
// No output is an input: where nothing is added V is y itself, where nothing stands between the input is V; then they
// are not made. ops::junction puts the tensor that is meant in their place.
// What lives from forward to backward: U and V, which stand for x and y, so a caller's x and y are let go where a sum
// took their place; z only if it has a norm or a gate that learns; gains and scales; the statistics.
#include "siamese/ops/junction.h"

#include <algorithm>
#include <utility>

#include "siamese/ops/gradient.h"
#include "siamese/ops/junction_kernels.h"
#include "siamese/ops/library.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {
namespace junction_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Given = const std::optional<at::Tensor>&;
using Flags = std::array<bool, kNorms>;
using Numbers = std::array<double, kNorms>;

// ---- The parts: arguments of the schema into tensors and plan.

PerSlot slots(Given branch, Given x, const at::Tensor& y, Given x_scale, Given branch_gain, Given branch_bias,
              Given x_gain, Given x_bias, Given y_gain, Given y_bias, Given input_gain, Given input_bias, Given gate) {
  PerSlot result;
  result[kY] = y;
  result[kBranch] = or_undefined(branch);
  result[kX] = or_undefined(x);
  result[kXScale] = or_undefined(x_scale);
  size_t slot = kGains;
  for (const auto* affine :
       {&branch_gain, &branch_bias, &x_gain, &x_bias, &y_gain, &y_bias, &input_gain, &input_bias}) {
    result[slot++] = or_undefined(*affine);
  }
  result[kGate] = or_undefined(gate);
  return result;
}

template <Made (*kKernel)(const PerSlot&, const JunctionPlan&)>
Made forward_part(Given branch, Given x, const at::Tensor& y, Given x_scale, Given branch_gain, Given branch_bias,
                  Given x_gain, Given x_bias, Given y_gain, Given y_bias, Given input_gain, Given input_bias,
                  double x_branch, double y_branch, double y_skip, double input_scale, Flags norms, Flags layer,
                  Numbers eps, bool half_input, Given gate) {
  const PerSlot given = slots(branch, x, y, x_scale, branch_gain, branch_bias, x_gain, x_bias, y_gain, y_bias,
                              input_gain, input_bias, gate);
  const JunctionPlan plan{x_branch, y_branch, y_skip, input_scale, norms, layer, eps, half_input};
  return kKernel(given, plan.given(given));
}

template <PerSlot (*kKernel)(const Returning&, const JunctionPlan&, const Wanted&)>
tensor_list backward_part(Given d_y_sum, Given d_x_out, Given d_input, Given branch, Given x_sum,
                          const at::Tensor& y_sum, Given x_scale, Given branch_gain, Given branch_bias, Given x_gain,
                          Given x_bias, Given y_gain, Given y_bias, Given input_gain, Given input_bias,
                          const at::Tensor& statistics, double x_branch, double y_branch, double y_skip,
                          double input_scale, Flags norms, Flags layer, Numbers eps, Wanted wanted, bool half_input,
                          bool half_branch, Given gate) {
  const Returning returning{or_undefined(d_y_sum), or_undefined(d_x_out), or_undefined(d_input),
                            slots(branch, x_sum, y_sum, x_scale, branch_gain, branch_bias, x_gain, x_bias, y_gain,
                                  y_bias, input_gain, input_bias, gate),
                            statistics};
  const JunctionPlan plan{x_branch, y_branch, y_skip, input_scale, norms, layer, eps, half_input, half_branch};
  const PerSlot gradients = kKernel(returning, plan.given(returning.saved), wanted);
  tensor_list result;
  for (const at::Tensor& gradient : gradients) {
    result.push_back(gradient.defined() ? gradient : no_gradient(y_sum));
  }
  return result;
}

// ---- And back: the calls of the ops.

template <class Op>
auto call(const Op& op, const PerSlot& t, const JunctionPlan& plan) {
  return op.call(as_optional(t[kBranch]), as_optional(t[kX]), t[kY], as_optional(t[kXScale]), as_optional(t[kGains]),
                 as_optional(t[kGains + 1]), as_optional(t[kGains + 2]), as_optional(t[kGains + 3]),
                 as_optional(t[kGains + 4]), as_optional(t[kGains + 5]), as_optional(t[kGains + 6]),
                 as_optional(t[kGains + 7]), plan.x_branch, plan.y_branch, plan.y_skip, plan.input_scale, plan.norms,
                 plan.layer, plan.eps, plan.half_input, as_optional(t[kGate]));
}

PerSlot call_backward(const Returning& returning, const JunctionPlan& plan, const Wanted& wanted) {
  static const auto op = find_op("junction_backward", backward_part<fused_backward>);
  const PerSlot& t = returning.saved;
  const tensor_list made = op.call(
      as_optional(returning.d_y_sum), as_optional(returning.d_x_out), as_optional(returning.d_input),
      as_optional(t[kBranch]), as_optional(t[kX]), t[kY], as_optional(t[kXScale]), as_optional(t[kGains]),
      as_optional(t[kGains + 1]), as_optional(t[kGains + 2]), as_optional(t[kGains + 3]), as_optional(t[kGains + 4]),
      as_optional(t[kGains + 5]), as_optional(t[kGains + 6]), as_optional(t[kGains + 7]), returning.statistics,
      plan.x_branch, plan.y_branch, plan.y_skip, plan.input_scale, plan.norms, plan.layer, plan.eps, wanted,
      plan.half_input, plan.half_branch, as_optional(t[kGate]));
  const Wanted within = plan.within(wanted, t);
  PerSlot result;
  for (size_t slot = 0; slot < kSlots; ++slot) result[slot] = if_wanted(within[slot], made[slot]);
  return result;
}

// ---- The pair.

// The plan from forward to backward, as lists that autograd can keep.
void keep(AutogradContext* context, const JunctionPlan& plan, const std::vector<bool>& present) {
  std::vector<double> numbers = {plan.x_branch, plan.y_branch, plan.y_skip, plan.input_scale};
  numbers.insert(numbers.end(), plan.eps.begin(), plan.eps.end());
  c10::List<bool> flags;
  for (const bool flag : plan.norms) flags.push_back(flag);
  for (const bool flag : plan.layer) flags.push_back(flag);
  flags.push_back(plan.half_input);
  flags.push_back(plan.half_branch);
  for (const bool flag : present) flags.push_back(flag);
  context->saved_data["numbers"] = numbers;
  context->saved_data["flags"] = flags;
}

std::pair<JunctionPlan, std::vector<bool>> kept(AutogradContext* context) {
  const std::vector<double> numbers = context->saved_data["numbers"].toDoubleVector();
  const c10::List<bool> flags = context->saved_data["flags"].toBoolList();
  JunctionPlan plan{numbers[0], numbers[1], numbers[2], numbers[3]};
  for (size_t norm = 0; norm < kNorms; ++norm) {
    plan.eps[norm] = numbers[4 + norm];
    plan.norms[norm] = flags[norm];
    plan.layer[norm] = flags[kNorms + norm];
  }
  plan.half_input = flags[2 * kNorms];
  plan.half_branch = flags[2 * kNorms + 1];
  std::vector<bool> present;
  for (size_t slot = 0; slot < kSlots; ++slot) present.push_back(flags[2 * kNorms + 2 + slot]);
  return {plan, present};
}

bool any_in_place(const PerSlot& saved, const Wanted& wanted) {
  for (size_t slot = kXScale; slot < kGate; ++slot) {
    if (wanted[slot] && adds_in_place(saved[slot])) return true;
  }
  return false;
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  // `given`: the tensors that are there, in the order of the slots. -> V, X, input, U
  static tensor_list forward(AutogradContext* context, const JunctionPlan& plan, const std::vector<bool>& present,
                             at::TensorList given) {
    const at::AutoDispatchBelowAutograd below;
    PerSlot tensors;
    size_t next = 0;
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (present[slot]) tensors[slot] = given[next++];
    }
    static const auto op = find_op("junction_forward", forward_part<fused_forward>);
    const auto [y_sum, x_out, input, x_sum, statistics] = call(op, tensors, plan);
    context->set_materialize_grads(false);
    mark_constants(context, plan, {y_sum, x_out, input, x_sum});
    // The gradient of a gate is the only other that needs z; the mask of drop-path has none.
    const bool learns_gate = plan.has_gate && tensors[kGate].requires_grad();
    if (!plan.norms[kOfBranch] && !learns_gate) tensors[kBranch] = at::Tensor();
    if (plan.adds_to_x()) tensors[kX] = plan.makes_x_sum() ? x_sum : x_out;
    if (plan.makes_y_sum()) tensors[kY] = y_sum;
    tensor_list saved(tensors.begin(), tensors.end());
    saved.push_back(statistics);
    context->save_for_backward(saved);
    keep(context, plan, present);
    return {y_sum, x_out, input, x_sum};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto [numbers, present] = kept(context);
    const auto wanted_ones = wanted_gradients(context, present);
    Wanted wanted;
    std::copy(wanted_ones.begin(), wanted_ones.end(), wanted.begin());
    const auto saved = context->get_saved_variables();
    Returning returning{grads[0], grads[1], grads[2], {}, saved[kSlots]};
    std::copy_n(saved.begin(), kSlots, returning.saved.begin());
    const JunctionPlan plan = numbers.given(returning.saved);
    const BelowAutograd below;
    // Then one array less is written. The op itself does not give one tensor twice.
    const bool one_for_both = wanted[kBranch] && wanted[kY] && plan.y_gradient_is_the_branchs();
    if (one_for_both) wanted[kBranch] = false;
    const bool in_place = any_in_place(returning.saved, wanted) && has_kernel(returning.saved[kY], plan);
    PerSlot gradients = in_place ? backward_in_place(returning, plan, wanted) : call_backward(returning, plan, wanted);
    if (one_for_both) gradients[kBranch] = gradients[kY];
    tensor_list result = {at::Tensor(), at::Tensor()};  // for plan and present
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (present[slot]) result.push_back(gradients[slot]);
    }
    return result;
  }

 private:
  // What was not made, and U beside a normalised X, which is only to look at.
  static void mark_constants(AutogradContext* context, const JunctionPlan& plan, const tensor_list& outputs) {
    tensor_list constant = {outputs[3]};
    if (!plan.makes_y_sum()) constant.push_back(outputs[0]);
    if (!plan.makes_x_out()) constant.push_back(outputs[1]);
    if (!plan.makes_input()) constant.push_back(outputs[2]);
    context->mark_non_differentiable(constant);
  }
};

using Outputs = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Outputs record(const PerSlot& given, const JunctionPlan& plan) {
  std::vector<bool> present;
  tensor_list tensors;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    present.push_back(given[slot].defined());
    if (given[slot].defined())
      tensors.push_back(slot < kXScale || slot == kGate ? dense_once(given[slot]) : given[slot]);
  }
  const tensor_list made = Pair::apply(plan, present, at::TensorList(tensors));
  return {made[0], made[1], made[2], made[3]};
}

Outputs only_compute(const PerSlot& given, const JunctionPlan& plan) {
  static const auto op = find_op("junction_forward", forward_part<fused_forward>);
  const auto [y_sum, x_out, input, x_sum, statistics] = call(op, given, plan);
  return {y_sum, x_out, input, x_sum};
}

template <Outputs (*kRun)(const PerSlot&, const JunctionPlan&)>
Outputs whole(Given branch, Given x, const at::Tensor& y, Given x_scale, Given branch_gain, Given branch_bias,
              Given x_gain, Given x_bias, Given y_gain, Given y_bias, Given input_gain, Given input_bias,
              double x_branch, double y_branch, double y_skip, double input_scale, Flags norms, Flags layer,
              Numbers eps, bool half_input, Given gate) {
  const PerSlot given = slots(branch, x, y, x_scale, branch_gain, branch_bias, x_gain, x_bias, y_gain, y_bias,
                              input_gain, input_bias, gate);
  const JunctionPlan plan{x_branch, y_branch, y_skip, input_scale, norms, layer, eps, half_input};
  return kRun(given, plan.given(given));
}

// norms, layer and eps: of the branch, x, y, input.
TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string affine =
      "Tensor? x_scale, Tensor? branch_gain, Tensor? branch_bias, Tensor? x_gain, Tensor? x_bias, Tensor? y_gain, "
      "Tensor? y_bias, Tensor? input_gain, Tensor? input_bias";
  const std::string plan =
      "float x_branch, float y_branch, float y_skip, float input_scale, bool[4] norms, bool[4] layer, float[4] eps";
  const std::string given =
      "(Tensor? branch, Tensor? x, Tensor y, " + affine + ", " + plan + ", bool half_input=False, Tensor? gate=None)";
  const std::string outputs = "Tensor y_sum, Tensor x_out, Tensor input, Tensor x_sum";
  define_pair(library, "junction" + given + " -> (" + outputs + ")", whole<record>, whole<only_compute>);
  define_part(library, "junction_forward" + given + " -> (" + outputs + ", Tensor statistics)",
              forward_part<plain_forward>, forward_part<fused_forward>, forward_part<meta_forward>);
  define_part(library,
              "junction_backward(Tensor? d_y_sum, Tensor? d_x_out, Tensor? d_input, Tensor? branch, Tensor? x_sum, "
              "Tensor y_sum, " +
                  affine + ", Tensor statistics, " + plan +
                  ", bool[13] wanted, bool half_input=False, bool half_branch=False, Tensor? gate=None) -> Tensor[]",
              backward_part<plain_backward>, backward_part<fused_backward>, backward_part<meta_backward>);
}

// A pass with element-wise norms, taken apart: the sums are fused passes, the norms ops of their own.
JunctionResult with_pointwise_norms(Junction j) {
  const auto detached = [](NormStep& norm) { return std::exchange(norm, NormStep{}); };
  if (j.branch_norm.pointwise() && j.branch.defined()) {
    j.branch = apply(detached(j.branch_norm), j.branch.to(j.y.scalar_type()));
  }
  if (!j.x_norm.pointwise() && !j.y_norm.pointwise() && !j.input_norm.pointwise()) return junction(j);
  const auto sum = [&](const at::Tensor& stream, double skip, double branch) {
    return junction({.branch = branch != 0 ? j.branch : at::Tensor(),
                     .x = {},
                     .y = stream,
                     .y_branch = branch,
                     .y_skip = skip,
                     .x_scale = {},
                     .gate = branch != 0 ? j.gate : at::Tensor(),
                     .branch_norm = branch != 0 ? j.branch_norm : NormStep{},
                     .x_norm = {},
                     .y_norm = {},
                     .input_norm = {}})
        .y;
  };
  JunctionResult result;
  result.y = sum(j.y, j.y_skip, j.y_branch);
  result.input = apply(j.y_norm, result.y);
  if (j.x.defined()) {
    const at::Tensor u = sum(j.x, 1, j.x_branch);
    result.x_sum = u.detach();
    result.x = apply(j.x_norm, u);
    Junction merge;
    merge.x = result.x;
    merge.y = result.input;
    merge.x_scale = j.x_scale;
    result.input = junction(merge).input;
  }
  result.input = apply(j.input_norm, result.input);
  if (j.input_scale != 1) result.input = result.input * j.input_scale;
  if (j.half_input) result.input = result.input.to(at::kBFloat16);
  return result;
}

}  // namespace junction_op

JunctionResult junction(const Junction& j) {
  using namespace junction_op;
  if (j.branch_norm.pointwise() || j.x_norm.pointwise() || j.y_norm.pointwise() || j.input_norm.pointwise()) {
    return with_pointwise_norms(j);
  }
  const PartScope scope("part::junction");
  static const auto op = find_op("junction", whole<record>);
  const JunctionPlan plan = plan_of(j);
  const auto [y_sum, x_out, input, x_sum] = call(op, tensors_of(j), plan);
  JunctionResult result;
  result.y = plan.makes_y_sum() ? y_sum : j.y;
  result.x = plan.makes_x_out() ? x_out : j.x;
  result.input = plan.makes_input() ? input : result.y;
  result.x_sum = plan.makes_x_sum() ? x_sum : (plan.norms[kOfX] ? j.x : result.x);
  return result;
}

}  // namespace siamese::ops

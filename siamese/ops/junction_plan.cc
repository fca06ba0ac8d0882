#include "siamese/ops/junction_plan.h"

#include "siamese/base/check.h"
#include "siamese/ops/arguments.h"

namespace siamese::ops::junction_op {

namespace {

bool half_beside(const at::Tensor& branch, const at::Tensor& y) {
  return branch.scalar_type() == at::kBFloat16 && y.scalar_type() == at::kFloat;
}

}  // namespace

JunctionPlan JunctionPlan::given(const PerSlot& tensors) const {
  JunctionPlan plan = *this;
  plan.has_branch = tensors[kBranch].defined();
  plan.has_gate = tensors[kGate].defined();
  plan.has_x = tensors[kX].defined();
  if (plan.has_branch) plan.half_branch = half_beside(tensors[kBranch], tensors[kY]);
  plan.norms[kOfBranch] &= plan.has_branch;
  plan.norms[kOfX] &= plan.has_x;
  return plan;
}

Wanted JunctionPlan::within(const Wanted& wanted, const PerSlot& tensors) const {
  Wanted result = wanted;
  result[kX] &= has_x;
  result[kGate] &= has_gate && has_branch;
  result[kXScale] &= has_x && tensors[kXScale].defined();
  for (size_t norm = 0; norm < kNorms; ++norm) {
    for (const size_t slot : {gain_of(norm), bias_of(norm)}) {
      result[slot] &= norms[norm] && tensors[slot].defined() && (layer[norm] || slot == gain_of(norm));
    }
  }
  return result;
}

c10::SymDimVector JunctionPlan::statistics_shape(const at::Tensor& y) const {
  int64_t numbers = 0;
  for (size_t norm = 0; norm < kNorms; ++norm) numbers += norms[norm] ? (layer[norm] ? 2 : 1) : 0;
  c10::SymDimVector shape = {numbers};
  const auto leading = y.sym_sizes().slice(0, static_cast<size_t>(y.dim() - 1));
  shape.append(leading.begin(), leading.end());
  return shape;
}

PerSlot tensors_of(const Junction& j) {
  return {j.branch,      j.x,           j.y,           j.x_scale,     j.branch_norm.gain, j.branch_norm.bias,
          j.x_norm.gain, j.x_norm.bias, j.y_norm.gain, j.y_norm.bias, j.input_norm.gain,  j.input_norm.bias,
          j.gate};
}

JunctionPlan plan_of(const Junction& j) {
  JunctionPlan plan;
  plan.x_branch = j.x_branch;
  plan.y_branch = j.y_branch;
  plan.y_skip = j.y_skip;
  plan.input_scale = j.input_scale;
  plan.half_input = j.half_input;
  const std::array<const NormStep*, kNorms> norms = {&j.branch_norm, &j.x_norm, &j.y_norm, &j.input_norm};
  for (size_t norm = 0; norm < kNorms; ++norm) {
    if (norms[norm]->pointwise())
      throw UsageError("junction: expected RMSNorms or LayerNorms in one pass, got another");
    plan.norms[norm] = norms[norm]->present;
    plan.layer[norm] = norms[norm]->layer;
    plan.eps[norm] = norms[norm]->eps;
  }
  return plan.given(tensors_of(j));
}

void check_tensors(const char* op, const PerSlot& tensors, const JunctionPlan& plan) {
  const at::Tensor& y = tensors[kY];
  const Arguments arguments(op, "y", y);
  arguments.least_rank("y", y, 1);
  const at::Tensor& branch = tensors[kBranch];
  arguments.shape("x", tensors[kX], y.sym_sizes());
  if (branch.defined() && half_beside(branch, y)) {
    Arguments(op, "branch", branch).rank("branch", branch, y.dim());
    arguments.require(branch.sym_sizes() == y.sym_sizes() && branch.device() == y.device(), "branch",
                      "shape " + shape_text(y.sym_sizes()) + " where y is", "shape " + shape_text(branch.sym_sizes()));
  } else {
    arguments.shape("branch", branch, y.sym_sizes());
  }
  const c10::SymInt cols = y.sym_size(-1);
  arguments.shape("x_scale", tensors[kXScale], {cols});
  constexpr std::array<const char*, 2 * kNorms> names = {"branch_gain", "branch_bias", "x_gain",     "x_bias",
                                                         "y_gain",      "y_bias",      "input_gain", "input_bias"};
  for (size_t i = 0; i < names.size(); ++i) arguments.shape(names[i], tensors[kGains + i], {cols});
  if (tensors[kGate].defined()) {
    arguments.least_rank("y", y, 2).shape("gate", tensors[kGate], {y.sym_size(0), cols});
  }
  for (size_t norm = 0; norm < kNorms; ++norm) {
    const bool bare = !plan.norms[norm] || plan.layer[norm] || !tensors[bias_of(norm)].defined();
    arguments.require(bare, names[2 * norm + 1], "no bias beside an RMSNorm", "one");
  }
}

}  // namespace siamese::ops::junction_op

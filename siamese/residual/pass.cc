#include "siamese/residual/pass.h"

#include "siamese/base/check.h"

namespace siamese::residual {

ops::Junction pass_over(const Streams& streams) {
  Streams now = streams;
  if (now.pending && now.pending->branch.gate.defined()) {  // the pass knows no gate: it acts before
    Pending& pending = *now.pending;
    const at::Tensor normed = ops::apply(pending.output_norm, pending.branch.value);
    pending.branch = {gated({normed, pending.branch.gate}), {}};
    pending.output_norm = {};
  }
  if (now.list.size() != 1 && now.list.size() != 2) {
    throw UsageError("pass_over: expected one stream or two, got " + std::to_string(now.list.size()));
  }
  ops::Junction pass;
  pass.y = now.list.back().value;
  pass.half_input = now.rounds_input;
  if (now.list.size() == 2) pass.x = now[0];
  if (!now.pending) return pass;
  pass.branch = now.pending->branch.value;
  pass.y_branch = now.pending->coefficients.back();
  if (now.list.size() == 2) pass.x_branch = now.pending->coefficients[0];
  pass.branch_norm = now.pending->output_norm;
  return pass;
}

at::Tensor norm_of_sum(const nn::Norm& norm, const at::Tensor& stream, double skip, const Branch& branch,
                       double coefficient) {
  ops::Junction pass;
  pass.branch = gated(branch);
  pass.y = stream;
  pass.y_branch = coefficient;
  pass.y_skip = skip;
  pass.y_norm = norm.step();
  return ops::junction(pass).input;
}

}  // namespace siamese::residual

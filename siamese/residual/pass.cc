#include "siamese/residual/pass.h"

#include <algorithm>

#include "siamese/base/check.h"

namespace siamese::residual {

namespace pass_detail {

// Whether it is a row, or one number, for each sample of `stream`.
bool is_of_samples(const at::Tensor& gate, const at::Tensor& stream) {
  if (stream.dim() < 2 || gate.dim() != stream.dim() || gate.scalar_type() != stream.scalar_type()) return false;
  for (int64_t i = 1; i < gate.dim() - 1; ++i) {
    if (gate.sym_size(i) != 1) return false;
  }
  return gate.sym_size(0) == stream.sym_size(0) && (gate.sym_size(-1) == 1 || gate.sym_size(-1) == stream.sym_size(-1));
}

// Branch, norm and gate into the pass; a gate of any other shape acts before it.
void take(ops::Junction& pass, const Branch& branch, const ops::NormStep& output_norm) {
  if (branch.gate.defined() && !is_of_samples(branch.gate, pass.y)) {
    pass.branch = gated({ops::apply(output_norm, branch.value), branch.gate});
    return;
  }
  pass.branch = branch.value;
  pass.branch_norm = output_norm;
  if (!branch.gate.defined()) return;
  at::Tensor gate = branch.gate;
  while (gate.dim() > 2) gate = gate.squeeze(1);
  pass.gate = gate.expand_symint({gate.sym_size(0), pass.y.sym_size(-1)});
}

}  // namespace pass_detail

ops::Junction pass_over(const Streams& streams) {
  if (streams.list.size() != 1 && streams.list.size() != 2) {
    throw UsageError("pass_over: expected one stream or two, got " + std::to_string(streams.list.size()));
  }
  const bool two = streams.list.size() == 2;
  ops::Junction pass;
  pass.y = streams.list.back().value;
  pass.half_input = streams.rounds_input;
  if (two) pass.x = streams[0];
  if (!streams.pending) return pass;
  pass_detail::take(pass, streams.pending->branch, streams.pending->output_norm);
  pass.y_branch = streams.pending->coefficients.back();
  if (two) pass.x_branch = streams.pending->coefficients[0];
  return pass;
}

ops::Junction pass_over_first(const Streams& streams) {
  if (streams.list.empty()) throw UsageError("pass_over_first: expected a stream or more, got none");
  Streams first;
  first.rounds_input = streams.rounds_input;
  first.list = {streams.list[0]};
  first.pending = streams.pending;
  if (first.pending) {
    auto& coefficients = first.pending->coefficients;
    if (std::any_of(coefficients.begin() + 1, coefficients.end(),
                    [](double coefficient) { return coefficient != 0; })) {
      throw UsageError("pass_over_first: expected a pending branch of the first stream alone, got one of several");
    }
    coefficients.resize(1);
  }
  return pass_over(first);
}

at::Tensor input_of_first(const nn::Norm& norm, const Streams& streams) {
  ops::Junction pass = pass_over_first(streams);
  pass.input_norm = norm.step();
  return ops::junction(pass).input;
}

Streams with_first(const Streams& streams, at::Tensor value) {
  std::vector<at::Tensor> values = {std::move(value)};
  for (size_t i = 1; i < streams.list.size(); ++i) values.push_back(streams[i]);
  return streams.replaced(std::move(values));
}

Streams deferring_to_first(const Streams& streams, const Branch& branch) {
  std::vector<double> coefficients(streams.list.size(), 0.0);
  if (!coefficients.empty()) coefficients[0] = 1;
  return streams.deferring({branch, std::move(coefficients)});
}

at::Tensor norm_of_sum(const nn::Norm& norm, const at::Tensor& stream, double skip, const Branch& branch,
                       double coefficient) {
  ops::Junction pass;
  pass.y = stream;
  pass_detail::take(pass, branch, {});
  pass.y_branch = coefficient;
  pass.y_skip = skip;
  pass.y_norm = norm.step();
  return ops::junction(pass).input;
}

}  // namespace siamese::residual

#include "siamese/models/stack.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include "siamese/base/check.h"
#include "siamese/models/recompute.h"
#include "siamese/nn/expect.h"
#include "siamese/ops/operand.h"
#include "siamese/residual/registry.h"

namespace siamese::models {

namespace stack_detail {

// The same sublayers with a further factor in their gates. Where a branch has none it becomes one number for each
// sample in the type of the streams, which their fused pass takes as it is (residual/pass.h); 1 leaves the branch
// alone.
Sublayer scaled(const Sublayer& sublayer, const std::vector<double>& scales, const at::TensorOptions& streams) {
  return [=](const residual::Site& site, const at::Tensor& input, const std::vector<at::Tensor>& conditions,
             const std::vector<at::Tensor>& carry) {
    SublayerOutput output = sublayer(site, input, conditions, carry);
    const double scale = scales[static_cast<size_t>(site.block)];
    if (scale == 1) return output;
    at::Tensor& gate = output.branch.gate;
    if (gate.defined()) {
      gate = gate * scale;
      return output;
    }
    std::vector<int64_t> each_sample(static_cast<size_t>(output.branch.value.dim()), 1);
    each_sample[0] = output.branch.value.size(0);
    gate = at::full(each_sample, scale, streams);
    return output;
  };
}

}  // namespace stack_detail

Stack::Stack(const nn::Scope& scope, const std::string& scheme, const residual::Build& build,
             std::vector<double> branch_scales, bool hands_on)
    : scope_(scope), modulated_(build.modulated), branch_scales_(std::move(branch_scales)) {
  const auto parts = std::make_shared<Parts>();
  parts->topology = residual::make_topology(scheme, scope, build);
  parts->hands_on = hands_on;
  for (int64_t index = 0; index < 2 * build.blocks; ++index) {
    const residual::Site site = residual::site_at(index, build.blocks);
    parts->sites.push_back(site);
    parts->junctions.push_back(parts->topology->junction(scope.child(residual::junction_name(site)), site));
  }
  parts_ = parts;
}

namespace {

// A branch that contributes nothing. The gate says so too: it acts after the scheme's output norm, which may have a
// bias.
SublayerOutput nothing_of(const at::Tensor& input, std::vector<at::Tensor> carry) {
  return {.branch = {at::zeros_like(input), at::zeros({input.size(0), 1, 1}, input.options().requires_grad(false))},
          .carry = std::move(carry)};
}

}  // namespace

Stack::Passing Stack::Parts::run(Passing passing, size_t first, size_t last, const Sublayer& sublayer,
                                 const std::vector<at::Tensor>& conditions, residual::Recorder* recorder,
                                 std::vector<at::Tensor>& beside, Intervention* intervention) const {
  for (size_t i = first; i < last; ++i) {
    if (intervention != nullptr) {
      passing.streams = intervention->between(i, std::move(passing.streams));
      passing.carry = intervention->carry(i, std::move(passing.carry));
    }
    residual::ReadResult read = junctions[i]->read(passing.streams, recorder);
    if (intervention != nullptr) read.branch_input = intervention->input(sites[i], std::move(read.branch_input));
    const bool left_out = intervention != nullptr && intervention->leaves_out(sites[i]);
    const bool runs = !left_out || (hands_on && sites[i].kind == residual::SiteKind::attention);
    SublayerOutput output = runs ? sublayer(sites[i], read.branch_input, conditions, passing.carry)
                                 : nothing_of(read.branch_input, passing.carry);
    if (left_out && runs) output = nothing_of(read.branch_input, std::move(output.carry));
    // A gate, a recorder and a scheme whose read did not round take floats.
    if (output.branch.gate.defined() || read.branch_input.scalar_type() != at::kBFloat16) {
      output.branch.value = ops::from_operand(output.branch.value);
    }
    if (recorder != nullptr) {
      recorder->branch(sites[i], output.input.defined() ? output.input : read.branch_input, output.branch.value);
    }
    passing = {junctions[i]->write(read.streams, output.branch), std::move(output.carry)};
    beside.insert(beside.end(), output.beside.begin(), output.beside.end());
  }
  return passing;
}

SegmentParameters Stack::parameters_of(size_t first, size_t last) const {
  SegmentParameters parameters{scope_.parameters(), {}};
  const auto& list = parameters.all.list();
  for (int64_t block = parts_->sites[first].block; block <= parts_->sites[last - 1].block; ++block) {
    const std::string below = scope_.child("blocks." + std::to_string(block)).name() + ".";
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].name.starts_with(below)) parameters.used.push_back(i);
    }
  }
  return parameters;
}

Stack::Passing Stack::run_recomputed(const Passing& passing, size_t first, size_t last, const Sublayer& sublayer,
                                     const std::vector<at::Tensor>& conditions, residual::Recorder* recorder,
                                     std::vector<at::Tensor>& beside) const {
  const residual::FlatStreams flat = residual::flatten(passing.streams);
  // The first pass tells what the segment returns and is the one the recorder sees; backward's pass is silent. What
  // points to this frame is dropped after the first pass: backward runs when the frame is gone.
  struct FirstPass {
    residual::StreamsLayout* layout;
    size_t* carried;
    residual::Recorder* recorder;
  };
  residual::StreamsLayout layout;
  size_t carried = 0;
  const auto first_pass = std::make_shared<std::optional<FirstPass>>(FirstPass{&layout, &carried, recorder});
  const Segment segment = [parts = parts_, first, last, sublayer, first_pass, stream_inputs = flat.tensors.size(),
                           carry_inputs = passing.carry.size(), before = flat.layout,
                           precision = ops::precision()](const std::vector<at::Tensor>& inputs) {
    const ops::PrecisionGuard as_in_forward(precision);
    const auto now = std::exchange(*first_pass, std::nullopt);
    const auto carry = inputs.begin() + static_cast<std::ptrdiff_t>(stream_inputs);
    const auto given = carry + static_cast<std::ptrdiff_t>(carry_inputs);
    const residual::Streams opened = residual::unflatten(before, at::TensorList(inputs).slice(0, stream_inputs));
    std::vector<at::Tensor> made;
    const Passing passed = parts->run({opened, {carry, given}}, first, last, sublayer, {given, inputs.end()},
                                      now ? now->recorder : nullptr, made);
    residual::FlatStreams result = residual::flatten(passed.streams);
    if (now) {
      *now->layout = std::move(result.layout);
      *now->carried = passed.carry.size();
    }
    result.tensors.insert(result.tensors.end(), passed.carry.begin(), passed.carry.end());
    result.tensors.insert(result.tensors.end(), made.begin(), made.end());
    return result.tensors;
  };
  std::vector<at::Tensor> inputs = flat.tensors;
  inputs.insert(inputs.end(), passing.carry.begin(), passing.carry.end());
  inputs.insert(inputs.end(), conditions.begin(), conditions.end());
  const auto outputs = recompute(segment, inputs, parameters_of(first, last));
  const size_t stream_tensors = layout.tensors();
  const auto carry = outputs.begin() + static_cast<std::ptrdiff_t>(stream_tensors);
  const auto made = carry + static_cast<std::ptrdiff_t>(carried);
  beside.insert(beside.end(), made, outputs.end());
  return {residual::unflatten(layout, at::TensorList(outputs).slice(0, stream_tensors)), {carry, made}};
}

bool Stack::rounds_input(const residual::Streams& streams, const StackOptions& options) const {
  return ops::rounds_operand(streams[0]) && !modulated_ && options.recorder == nullptr &&
         options.intervention == nullptr;
}

// Backward takes the nodes that are ready in the opposite order of their making. So before it takes the one that made
// the newest of these tensors, it has taken all that were made since: those of the sites to come, and with them the
// sums into the gradients of parameters, which it never lets wait.
void Stack::watch(const residual::Streams& streams, size_t first, const StackOptions& options) const {
  if (!options.passed || first == 0) return;
  at::Tensor newest;
  for (const at::Tensor& tensor : residual::flatten(streams).tensors) {
    const auto made_by = tensor.grad_fn();
    if (made_by && (!newest.defined() || made_by->sequence_nr() > newest.grad_fn()->sequence_nr())) newest = tensor;
  }
  if (!newest.defined()) return;  // nothing before it learns
  newest.register_hook([passed = options.passed, block = sites()[first].block](const at::Tensor&) { passed(block); });
}

StackOutput Stack::operator()(const at::Tensor& embedding, const Sublayer& sublayer, const StackOptions& options,
                              const std::vector<at::Tensor>& conditions) const {
  const std::vector<double>& scales = options.branch_scales.empty() ? branch_scales_ : options.branch_scales;
  if (!scales.empty() && 2 * scales.size() != sites().size()) {
    throw UsageError("branch_scales: expected " + std::to_string(sites().size() / 2) + ", one for each block, got " +
                     std::to_string(scales.size()));
  }
  const Sublayer compute = scales.empty() ? sublayer : stack_detail::scaled(sublayer, scales, embedding.options());
  StackOutput output;
  Passing passing{parts_->topology->open(embedding), {}};
  residual::Streams& streams = passing.streams;
  streams.rounds_input = rounds_input(streams, options);
  // Streams that open as the same tensor become nodes of their own: then each gathers its gradient before they are
  // added, in the same order whether a segment is recomputed or not.
  for (auto& stream : streams.list) stream.value = at::alias(stream.value);
  const bool recomputes = options.recompute_every > 0 && c10::GradMode::is_enabled();
  Intervention* const change = options.intervention;
  if (change != nullptr) {
    nn::expect_that(!recomputes, "recompute_every", "0 with an intervention", options.recompute_every);
  }
  if (options.watch != nullptr) {
    nn::expect_that(!recomputes, "recompute_every", "0 where attention is watched", options.recompute_every);
  }
  const auto length = static_cast<size_t>(2 * (recomputes ? options.recompute_every : 1));
  for (size_t first = change != nullptr ? change->first_site() : 0; first < sites().size(); first += length) {
    const size_t last = std::min(sites().size(), first + length);
    watch(streams, first, options);
    passing = recomputes ? run_recomputed(passing, first, last, compute, conditions, options.recorder, output.beside)
                         : parts_->run(std::move(passing), first, last, compute, conditions, options.recorder,
                                       output.beside, change);
  }
  if (change != nullptr) streams = change->between(sites().size(), std::move(streams));
  streams.rounds_input = false;
  output.hidden = parts_->topology->close(streams);
  return output;
}

}  // namespace siamese::models

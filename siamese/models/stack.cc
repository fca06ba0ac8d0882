#include "siamese/models/stack.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/models/recompute.h"
#include "siamese/residual/registry.h"

namespace siamese::models {

std::string junction_name(const residual::Site& site) {
  return "blocks." + std::to_string(site.block) + "." + std::string(enum_text(site.kind)) + "_junction";
}

Stack::Stack(const nn::Scope& scope, const std::string& scheme, const residual::Build& build)
    : topology_(residual::make_topology(scheme, scope, build)) {
  for (int64_t index = 0; index < 2 * build.blocks; ++index) {
    const residual::Site site = residual::site_at(index, build.blocks);
    sites_.push_back(site);
    junctions_.push_back(topology_->junction(scope.child(junction_name(site)), site));
  }
}

residual::Streams Stack::run(residual::Streams streams, size_t first, size_t last, const Sublayer& sublayer,
                             const std::vector<at::Tensor>& conditions, residual::Recorder* recorder,
                             std::vector<at::Tensor>& beside) const {
  for (size_t i = first; i < last; ++i) {
    const residual::ReadResult read = junctions_[i]->read(streams, recorder);
    const SublayerOutput output = sublayer(sites_[i], read.branch_input, conditions);
    if (recorder != nullptr) {
      recorder->branch(sites_[i], output.input.defined() ? output.input : read.branch_input, output.branch.value);
    }
    streams = junctions_[i]->write(read.streams, output.branch);
    beside.insert(beside.end(), output.beside.begin(), output.beside.end());
  }
  return streams;
}

residual::Streams Stack::run_recomputed(const residual::Streams& streams, size_t first, size_t last,
                                        const Sublayer& sublayer, const std::vector<at::Tensor>& conditions,
                                        residual::Recorder* recorder, std::vector<at::Tensor>& beside) const {
  const residual::FlatStreams flat = residual::flatten(streams);
  // The first pass tells what the segment returns and is the one the recorder sees; backward's pass is silent. What
  // points to this frame is dropped after the first pass: backward runs when the frame is gone.
  struct FirstPass {
    residual::Streams* layout;
    size_t* stream_tensors;  // how many of the outputs are the streams'
    residual::Recorder* recorder;
  };
  residual::Streams layout;
  size_t stream_tensors = 0;
  const auto first_pass = std::make_shared<std::optional<FirstPass>>(FirstPass{&layout, &stream_tensors, recorder});
  const Segment segment = [this, first, last, sublayer, first_pass, stream_inputs = flat.tensors.size(),
                           before = flat.layout](const std::vector<at::Tensor>& inputs) {
    const auto now = std::exchange(*first_pass, std::nullopt);
    const auto split = inputs.begin() + static_cast<std::ptrdiff_t>(stream_inputs);
    const residual::Streams opened = residual::unflatten(before, {inputs.begin(), split});
    std::vector<at::Tensor> made;
    residual::FlatStreams result = residual::flatten(
        run(opened, first, last, sublayer, {split, inputs.end()}, now ? now->recorder : nullptr, made));
    if (now) {
      *now->layout = std::move(result.layout);
      *now->stream_tensors = result.tensors.size();
    }
    result.tensors.insert(result.tensors.end(), made.begin(), made.end());
    return result.tensors;
  };
  std::vector<at::Tensor> inputs = flat.tensors;
  inputs.insert(inputs.end(), conditions.begin(), conditions.end());
  const auto outputs = recompute(segment, inputs);
  const auto split = outputs.begin() + static_cast<std::ptrdiff_t>(stream_tensors);
  beside.insert(beside.end(), split, outputs.end());
  return residual::unflatten(layout, {outputs.begin(), split});
}

StackOutput Stack::operator()(const at::Tensor& embedding, const Sublayer& sublayer, const StackOptions& options,
                              const std::vector<at::Tensor>& conditions) const {
  StackOutput output;
  residual::Streams streams = topology_->open(embedding);
  // Streams that open as the same tensor become nodes of their own: then each gathers its gradient before they are
  // added, in the same order whether a segment is recomputed or not.
  for (auto& stream : streams.list) stream.value = at::alias(stream.value);
  if (options.recompute_every <= 0 || !c10::GradMode::is_enabled()) {
    streams = run(std::move(streams), 0, sites_.size(), sublayer, conditions, options.recorder, output.beside);
  } else {
    const auto length = static_cast<size_t>(2 * options.recompute_every);
    for (size_t first = 0; first < sites_.size(); first += length) {
      const size_t last = std::min(sites_.size(), first + length);
      streams = run_recomputed(streams, first, last, sublayer, conditions, options.recorder, output.beside);
    }
  }
  output.hidden = topology_->close(streams);
  return output;
}

}  // namespace siamese::models

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
                             residual::Recorder* recorder) const {
  for (size_t i = first; i < last; ++i) {
    const residual::ReadResult read = junctions_[i]->read(streams, recorder);
    const residual::Branch branch = sublayer(sites_[i], read.branch_input);
    if (recorder != nullptr) recorder->branch(sites_[i], read.branch_input, branch.value);
    streams = junctions_[i]->write(read.streams, branch);
  }
  return streams;
}

at::Tensor Stack::operator()(const at::Tensor& embedding, const Sublayer& sublayer, const StackOptions& options) const {
  residual::Streams streams = topology_->open(embedding);
  // Streams that open as the same tensor become nodes of their own: then each gathers its gradient before they are
  // added, in the same order whether a segment is recomputed or not.
  for (auto& stream : streams.list) stream.value = at::alias(stream.value);
  if (options.recompute_every <= 0 || !c10::GradMode::is_enabled()) {
    return topology_->close(run(std::move(streams), 0, sites_.size(), sublayer, options.recorder));
  }
  const auto length = static_cast<size_t>(2 * options.recompute_every);
  for (size_t first = 0; first < sites_.size(); first += length) {
    const size_t last = std::min(sites_.size(), first + length);
    const residual::FlatStreams flat = residual::flatten(streams);
    // The first pass tells what the segment returns and is the one the recorder sees; backward's pass is silent. What
    // points to this frame is dropped after the first pass: backward runs when the frame is gone.
    struct FirstPass {
      residual::Streams* layout;
      residual::Recorder* recorder;
    };
    residual::Streams layout;
    const auto first_pass = std::make_shared<std::optional<FirstPass>>(FirstPass{&layout, options.recorder});
    const Segment segment = [this, first, last, sublayer, first_pass,
                             before = flat.layout](const std::vector<at::Tensor>& tensors) {
      const auto now = std::exchange(*first_pass, std::nullopt);
      residual::FlatStreams result = residual::flatten(
          run(residual::unflatten(before, tensors), first, last, sublayer, now ? now->recorder : nullptr));
      if (now) *now->layout = std::move(result.layout);
      return result.tensors;
    };
    const auto tensors = recompute(segment, flat.tensors);
    streams = residual::unflatten(layout, tensors);
  }
  return topology_->close(streams);
}

}  // namespace siamese::models

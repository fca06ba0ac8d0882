#include "siamese/residual/facts.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace siamese::residual {
namespace {

struct Counts {
  int64_t streams = 0;
  int64_t most_streams = 0;
  int64_t norms_in_block = 0;
  int64_t norms_at_ends = 0;
  int64_t parameters_in_block = 0;
};

// The most streams that there are between two blocks, or at one of the ends.
int64_t most_between_blocks(const Topology& topology, const nn::Scope& scope, Streams streams) {
  size_t most = streams.list.size();
  for (int64_t index = 0; index < 2 * kFactBlocks; ++index) {
    const auto junction = topology.junction(scope.child(std::to_string(index)), site_at(index, kFactBlocks));
    const ReadResult read = junction->read(streams, nullptr);
    streams = junction->write(read.streams, {read.branch_input, {}});
    if (index % 2 == 1) most = std::max(most, streams.list.size());
  }
  return static_cast<int64_t>(most);
}

// Shapes only, on the meta device. Block 5 of 8: past any exception for the first ones.
Counts count(const std::string& text, int64_t width) {
  constexpr int64_t kBlock = 5;
  nn::Parameters parameters(1, at::kFloat, at::kMeta);
  const nn::Scope root(parameters);
  const auto topology = make_topology(text, root, {.width = width, .blocks = kFactBlocks, .norm = {}});
  Counts counts;
  const auto norms = [&](size_t first) {
    int64_t found = 0;
    for (size_t i = first; i < parameters.list().size(); ++i) {
      found += parameters.list()[i].name.ends_with("norm.weight") ? 1 : 0;
    }
    return found;
  };
  counts.norms_at_ends = norms(0);
  const size_t first = parameters.list().size();
  const int64_t before = parameters.count();
  for (int64_t index = 2 * kBlock; index < 2 * kBlock + 2; ++index) {
    topology->junction(root.child(std::to_string(index)), site_at(index, kFactBlocks));
  }
  counts.norms_in_block = norms(first);
  counts.parameters_in_block = parameters.count() - before;
  const Streams opened = topology->open(at::empty({1, 1, width}, parameters.options()));
  counts.streams = static_cast<int64_t>(opened.list.size());
  counts.most_streams = most_between_blocks(*topology, root.child("run"), opened);
  return counts;
}

}  // namespace

SchemeFacts scheme_facts(const std::string& text) {
  constexpr int64_t kWidth = 64;
  constexpr int64_t kPreNorms = 2;
  const Counts once = count(text, kWidth);
  const Counts twice = count(text, 2 * kWidth);
  const int64_t per_width = (twice.parameters_in_block - once.parameters_in_block) / kWidth;
  return {once.streams,       once.most_streams,     once.norms_in_block,
          once.norms_at_ends, per_width - kPreNorms, once.parameters_in_block - per_width * kWidth};
}

std::string streams_text(const SchemeFacts& facts) {
  const std::string first = std::to_string(facts.streams);
  if (facts.most_streams == facts.streams) return first;
  return first + " to " + std::to_string(facts.most_streams) + " in " + std::to_string(kFactBlocks) + " blocks";
}

std::string extra_parameters_text(const SchemeFacts& facts) {
  std::string text = facts.extra_per_width != 0 ? std::to_string(facts.extra_per_width) + " d" : "";
  if (facts.extra_constant != 0 || text.empty()) {
    text += (text.empty() ? "" : " + ") + std::to_string(facts.extra_constant);
  }
  return text;
}

}  // namespace siamese::residual

#include "siamese/residual/facts.h"

#include <ATen/ATen.h>

namespace siamese::residual {
namespace {

struct Counts {
  int64_t streams = 0;
  int64_t norms_in_block = 0;
  int64_t norms_at_ends = 0;
  int64_t parameters_in_block = 0;
};

// Shapes only, on the meta device. Block 5 of 8: past any exception for the first ones.
Counts count(const std::string& text, int64_t width) {
  constexpr int64_t kBlocks = 8;
  constexpr int64_t kBlock = 5;
  nn::Parameters parameters(1, at::kFloat, at::kMeta);
  const nn::Scope root(parameters);
  const auto topology = make_topology(text, root, {.width = width, .blocks = kBlocks, .norm = {}});
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
    topology->junction(root.child(std::to_string(index)), site_at(index, kBlocks));
  }
  counts.norms_in_block = norms(first);
  counts.parameters_in_block = parameters.count() - before;
  counts.streams = static_cast<int64_t>(topology->open(at::empty({1, 1, width}, parameters.options())).list.size());
  return counts;
}

}  // namespace

SchemeFacts scheme_facts(const std::string& text) {
  constexpr int64_t kWidth = 64;
  constexpr int64_t kPreNorms = 2;
  const Counts once = count(text, kWidth);
  const Counts twice = count(text, 2 * kWidth);
  const int64_t per_width = (twice.parameters_in_block - once.parameters_in_block) / kWidth;
  return {once.streams, once.norms_in_block, once.norms_at_ends, per_width - kPreNorms,
          once.parameters_in_block - per_width * kWidth};
}

std::string extra_parameters_text(const SchemeFacts& facts) {
  std::string text = facts.extra_per_width != 0 ? std::to_string(facts.extra_per_width) + " d" : "";
  if (facts.extra_constant != 0 || text.empty()) {
    text += (text.empty() ? "" : " + ") + std::to_string(facts.extra_constant);
  }
  return text;
}

}  // namespace siamese::residual

#include "siamese/models/parts.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "siamese/base/check.h"

namespace siamese::models {
namespace {

constexpr std::string_view kBlocks = "blocks.";

struct Beginning {
  std::string_view name;
  ModelPart part;
};

// Of what stands outside the blocks.
constexpr Beginning kEnds[] = {
    {"embedding.", ModelPart::embedding}, {"positions.", ModelPart::embedding},
    {"patch.", ModelPart::embedding},     {"class_token", ModelPart::embedding},
    {"labels.", ModelPart::embedding},    {"timestep.", ModelPart::embedding},
    {"head.", ModelPart::head},           {"final.", ModelPart::head},
    {"open.", ModelPart::scheme},         {"close.", ModelPart::scheme},
};
// Of what stands in one, after its number.
constexpr Beginning kInBlock[] = {
    {"attention.", ModelPart::attention},   {"ffn.", ModelPart::ffn},
    {"modulation.", ModelPart::modulation}, {"attention_junction.", ModelPart::scheme},
    {"ffn_junction.", ModelPart::scheme},
};

// "3.ffn.in.weight" of "blocks.3.ffn.in.weight"; empty outside the blocks.
std::string_view in_blocks(std::string_view name) {
  return name.starts_with(kBlocks) ? name.substr(kBlocks.size()) : std::string_view();
}

}  // namespace

ModelPart part_of(const nn::Parameter& parameter) {
  // What dyt and derf learn beside gain and shift is a scalar of the norm.
  const bool of_norm = parameter.name.ends_with("norm.alpha") || parameter.name.ends_with("norm.shift");
  if (parameter.kind == nn::ParameterKind::norm || of_norm) return ModelPart::norm;
  const std::string_view inside = in_blocks(parameter.name);
  const auto find = [](const auto& list, std::string_view name) {
    const auto found = std::find_if(std::begin(list), std::end(list),
                                    [&](const Beginning& one) { return name.starts_with(one.name); });
    SIAMESE_INVARIANT(found != std::end(list));  // a part that is new needs its line above
    return found->part;
  };
  return inside.empty() ? find(kEnds, parameter.name) : find(kInBlock, inside.substr(inside.find('.') + 1));
}

bool is_operand_alone(const nn::Parameter& parameter) {
  if (parameter.kind != nn::ParameterKind::linear) return false;
  const ModelPart part = part_of(parameter);
  const bool in_block = part == ModelPart::attention || part == ModelPart::ffn;
  return in_block ? !parameter.matrices.empty() : part == ModelPart::head && parameter.matrices.empty();
}

std::array<int64_t, kModelParts> count_by_part(const nn::Parameters& parameters) {
  std::array<int64_t, kModelParts> counts{};
  for (const auto& parameter : parameters.list()) {
    counts[static_cast<size_t>(part_of(parameter))] += parameter.value.numel();
  }
  return counts;
}

std::vector<int64_t> count_by_block(const nn::Parameters& parameters) {
  std::vector<int64_t> counts;
  for (const auto& parameter : parameters.list()) {
    const std::string_view inside = in_blocks(parameter.name);
    if (inside.empty()) continue;
    const size_t block = std::stoul(std::string(inside.substr(0, inside.find('.'))));
    counts.resize(std::max(counts.size(), block + 1));
    counts[block] += parameter.value.numel();
  }
  return counts;
}

}  // namespace siamese::models

#include "siamese/models/parts.h"

#include <numeric>
#include <set>
#include <string>

#include "tests/models/small_families.h"
#include "tests/support/schemes.h"

namespace siamese::models {
namespace {

int64_t count_of(const std::array<int64_t, kModelParts>& counts, ModelPart part) {
  return counts[static_cast<size_t>(part)];
}

TEST(Parts, AddUpToAllParametersOfEveryFamilyAndScheme) {
  for (const Family family : all_families()) {
    for (const std::string& scheme : schemes_of(family)) {
      SCOPED_TRACE(case_name(family, scheme));
      const auto model = make_model(small_family(family, scheme), {}, 0, at::kMeta);
      const auto counts = count_by_part(model->parameters());
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), model->parameters().count());
    }
  }
}

// A mixture of experts under Pre-Norm, counted by hand.
TEST(Parts, OfAMixtureByHand) {
  const ModelConfig config = small_family(Family::moe, "pre");
  const auto model = make_model(config, {}, 0, at::kMeta);
  const auto counts = count_by_part(model->parameters());
  const int64_t w = 24, h = 20, experts = 5, shared = 12, blocks = 3;
  EXPECT_EQ(count_of(counts, ModelPart::embedding), 19 * w);
  EXPECT_EQ(count_of(counts, ModelPart::attention), blocks * 4 * w * w);
  EXPECT_EQ(count_of(counts, ModelPart::ffn), blocks * (experts * w + experts * 3 * w * h + 3 * w * shared));
  EXPECT_EQ(count_of(counts, ModelPart::norm), (2 * blocks + 1) * w);
  EXPECT_EQ(count_of(counts, ModelPart::scheme), 0);
  EXPECT_EQ(count_of(counts, ModelPart::modulation), 0);
  EXPECT_EQ(count_of(counts, ModelPart::head), 0) << "tied";
  const int64_t block = (count_of(counts, ModelPart::attention) + count_of(counts, ModelPart::ffn)) / blocks + 2 * w;
  EXPECT_EQ(count_by_block(model->parameters()), std::vector<int64_t>(3, block));
}

TEST(Parts, OfADitByHand) {
  const ModelConfig config = small_family(Family::dit, "hc(streams=2)");
  const auto counts = count_by_part(make_model(config, {}, 0, at::kMeta)->parameters());
  const int64_t w = 24;
  EXPECT_EQ(count_of(counts, ModelPart::modulation), 3 * (6 * w * w + 6 * w));
  EXPECT_EQ(count_of(counts, ModelPart::head), 2 * w * w + 2 * w + 4 * 6 * (w + 1));
  EXPECT_GT(count_of(counts, ModelPart::scheme), 0);
}

// What is left is read in float32: tables, gains, routers, what mixes streams, conditions and their modulations.
TEST(Parts, OperandsAlone) {
  const auto names = [](Family family, const std::string& scheme, bool tied) {
    ModelConfig config = small_family(family, scheme);
    if (!config.sees_images()) config.tied = tied;
    std::set<std::string> found;
    const auto model = make_model(config, {}, 0, at::kMeta);
    for (const auto& parameter : model->parameters().list()) {
      if (!is_operand_alone(parameter)) continue;
      const std::string& name = parameter.name;
      found.insert(name.starts_with("blocks.") ? name.substr(name.find('.', 7) + 1) : name);
    }
    return found;
  };
  const std::set<std::string> attention = {"attention.qkv.weight", "attention.out.weight"};
  const auto and_also = [&](const std::set<std::string>& more) {
    std::set<std::string> all = attention;
    all.insert(more.begin(), more.end());
    return all;
  };
  const std::set<std::string> dense = {"ffn.in.weight", "ffn.out.weight"};
  EXPECT_EQ(names(Family::lm, "hc(streams=2)", true), and_also(dense));
  EXPECT_EQ(names(Family::lm, "mhc(streams=2)", false), and_also({"ffn.in.weight", "ffn.out.weight", "head.weight"}));
  EXPECT_EQ(names(Family::moe, "pre", true),
            and_also({"ffn.experts.in", "ffn.experts.out", "ffn.shared.in.weight", "ffn.shared.out.weight"}));
  EXPECT_EQ(names(Family::vit, "pre", true), and_also({"ffn.in.weight", "ffn.out.weight", "head.weight"}));
  EXPECT_EQ(names(Family::dit, "pre", true), and_also({"ffn.in.weight", "ffn.out.weight", "final.out.weight"}));
}

}  // namespace
}  // namespace siamese::models

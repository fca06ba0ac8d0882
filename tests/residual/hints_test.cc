// What schemes ask of others: initial values of their own parameters, norms inside attention, initial weights.
#include "tests/residual/harness.h"

namespace siamese::residual {
namespace {

TEST(Hints, InitialGainsAreOneAndC1IsOne) {
  nn::Parameters parameters(1);
  const nn::Scope root(parameters);
  const Build build{.width = 8, .blocks = 2, .norm = {}};
  const auto topology = make_topology("siamese(x=hybrid)", root, build);
  const auto attention = topology->junction(root.child("a"), site_at(0, 2));
  const auto ffn = topology->junction(root.child("f"), site_at(1, 2));
  for (const auto& parameter : parameters.list()) {
    EXPECT_TRUE(at::equal(parameter.value, at::ones({8}))) << parameter.name;
    EXPECT_EQ(parameter.kind, nn::ParameterKind::norm) << parameter.name;  // c1 decays with the norms
  }
  EXPECT_NE(parameters.find("a.x_scale"), nullptr);
  EXPECT_EQ(parameters.find("f.x_scale"), nullptr);
  EXPECT_EQ(parameters.find("a.x_norm.weight"), nullptr);
}

TEST(Hints, SchemesHintTheNormsInsideAttention) {
  nn::Parameters parameters(1);
  const nn::Scope root(parameters);
  const Build build{.width = 8, .blocks = 2, .norm = {}};
  int scope = 0;
  const auto hint = [&](const std::string& scheme) {
    return make_topology(scheme, root.child(std::to_string(scope++)), build)->attention_norm(site_at(0, 2));
  };
  EXPECT_EQ(hint("pre"), nn::AttentionNorm::none);
  EXPECT_EQ(hint("post"), nn::AttentionNorm::none);
  EXPECT_EQ(hint("hybrid"), nn::AttentionNorm::qkv);
  EXPECT_EQ(hint("hybrid(first=pre)"), nn::AttentionNorm::qkv);
  EXPECT_EQ(hint("olmo2"), nn::AttentionNorm::qk_full);
  for (const char* const scheme :
       {"embed", "peri", "sandwich", "deepnorm", "mixln", "lns", "resi_dual", "span", "keel", "hc", "mhc",
        "siamese(form=write)", "attn_res", "lambda", "denseformer", "orthogonal", "mv_split"}) {
    EXPECT_EQ(hint(scheme), nn::AttentionNorm::none) << scheme;
  }
  EXPECT_EQ(hint("siamese"), nn::AttentionNorm::none);
  EXPECT_EQ(hint("siamese(x=hybrid)"), nn::AttentionNorm::qkv);
}

BranchInit branch_init(const std::string& scheme, int64_t blocks) {
  nn::Parameters parameters(1);
  const Build build{.width = 8, .blocks = blocks, .norm = {}};
  return make_topology(scheme, nn::Scope(parameters), build)->branch_init(site_at(3, blocks));
}

TEST(Hints, DeepNormAsksForBetaEverywhereButOnQueryAndKey) {
  const double beta = 1 / std::sqrt(std::sqrt(8.0 * 12));
  const BranchInit init = branch_init("deepnorm", 12);
  EXPECT_DOUBLE_EQ(init.value, beta);
  EXPECT_DOUBLE_EQ(init.ffn_input, beta);
  EXPECT_DOUBLE_EQ(init.output, beta);
  EXPECT_FALSE(init.depth_factor);
}

TEST(Hints, LnsAsksForNoFactorOfDepthAndOthersLeaveTheRule) {
  EXPECT_FALSE(branch_init("lns", 12).depth_factor);
  EXPECT_EQ(branch_init("lns", 12).output, 1);
  for (const char* const scheme :
       {"pre", "post", "embed", "peri", "sandwich", "olmo2", "mixln", "hybrid", "resi_dual", "span", "keel", "hc",
        "mhc", "siamese", "attn_res", "lambda", "denseformer", "orthogonal", "mv_split"}) {
    const BranchInit init = branch_init(scheme, 12);
    EXPECT_TRUE(init.depth_factor) << scheme;
    EXPECT_EQ(init.value * init.ffn_input * init.output, 1) << scheme;
  }
  EXPECT_EQ(branch_init("span(output_init=0.25)", 12).output, 0.25);
  EXPECT_EQ(branch_init("hc(output_init=2)", 12).output, 2);
}

}  // namespace
}  // namespace siamese::residual

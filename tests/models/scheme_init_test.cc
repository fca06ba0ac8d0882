// The factors that schemes ask for, on the weights of a real model. An initial value is a pure function of (seed, name,
// index), so the ratio of two schemes' weights is the ratio of their factors.
#include <cmath>

#include "tests/models/small_lm.h"

namespace siamese::models {
namespace {

std::unique_ptr<LanguageModel> fresh(const std::string& scheme, nn::InitRule rule) {
  nn::InitConfig init;
  init.rule = rule;
  return std::make_unique<LanguageModel>(small_config(scheme), init, nn::Parameters(1, at::kDouble));
}

at::Tensor weight(const LanguageModel& model, const std::string& name) { return model.parameters().find(name)->value; }

void expect_ratio(const at::Tensor& weight, const at::Tensor& base, double ratio, const std::string& what) {
  testing::expect_relative(weight, base * ratio, 1e-12, what);
}

TEST(SchemeInit, DeepNormScalesValueOutputAndFeedForwardOnly) {
  // width 24, 4 query heads and 2 key/value heads of 6: rows of qkv are q 0..23, k 24..35, v 36..47.
  const double beta = std::pow(8.0 * 3, -0.25);
  for (const auto rule : {nn::InitRule::full_megatron, nn::InitRule::normal}) {
    const auto deep = fresh("deepnorm", rule);
    const auto post = fresh("post", rule);
    // Post-Norm's output projections carry the rule's own factor of depth, DeepNorm's do not.
    const double depth = rule == nn::InitRule::full_megatron ? std::sqrt(2.0 * 3) : 1;
    for (const std::string block : {"blocks.0.", "blocks.2."}) {
      const at::Tensor qkv = weight(*deep, block + "attention.qkv.weight");
      const at::Tensor base = weight(*post, block + "attention.qkv.weight");
      expect_ratio(qkv.narrow(0, 0, 36), base.narrow(0, 0, 36), 1, block + "q and k");
      expect_ratio(qkv.narrow(0, 36, 12), base.narrow(0, 36, 12), beta, block + "v");
      for (const std::string name : {"attention.out.weight", "ffn.out.weight"}) {
        expect_ratio(weight(*deep, block + name), weight(*post, block + name), beta * depth, block + name);
      }
      expect_ratio(weight(*deep, block + "ffn.in.weight"), weight(*post, block + "ffn.in.weight"), beta, block + "in");
    }
    expect_ratio(weight(*deep, "embedding.weight"), weight(*post, "embedding.weight"), 1, "embedding");
  }
}

TEST(SchemeInit, LnsStartsWithoutTheFactorOfDepth) {
  const auto lns = fresh("lns", nn::InitRule::full_megatron);
  const auto pre = fresh("pre", nn::InitRule::full_megatron);
  for (const std::string name : {"blocks.1.attention.out.weight", "blocks.1.ffn.out.weight"}) {
    expect_ratio(weight(*lns, name), weight(*pre, name), std::sqrt(2.0 * 3), name);
  }
  expect_ratio(weight(*lns, "blocks.1.ffn.in.weight"), weight(*pre, "blocks.1.ffn.in.weight"), 1, "in");
}

TEST(SchemeInit, OutputInitScalesOutputProjections) {
  const auto pre = fresh("pre", nn::InitRule::full_megatron);
  for (const std::string scheme : {"hc(streams=4, output_init=2)", "span(output_init=2)"}) {
    const auto scaled = fresh(scheme, nn::InitRule::full_megatron);
    for (const std::string name : {"blocks.1.attention.out.weight", "blocks.1.ffn.out.weight"}) {
      expect_ratio(weight(*scaled, name), weight(*pre, name), 2, scheme + " " + name);
    }
    expect_ratio(weight(*scaled, "blocks.1.attention.qkv.weight"), weight(*pre, "blocks.1.attention.qkv.weight"), 1,
                 scheme);
  }
}

TEST(SchemeInit, Olmo2NormalisesTheWholeOfQueryAndKey) {
  const auto model = fresh("olmo2", nn::InitRule::normal);
  EXPECT_EQ(weight(*model, "blocks.0.attention.q_norm.weight").numel(), 24);
  EXPECT_EQ(weight(*model, "blocks.0.attention.k_norm.weight").numel(), 12);
  EXPECT_EQ(model->parameters().find("blocks.0.attention.v_norm.weight"), nullptr);
}

}  // namespace
}  // namespace siamese::models

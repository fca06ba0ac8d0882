#include "siamese/train/optimizer.h"

#include <map>

#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/models/registry.h"
#include "siamese/ops/adamw.h"
#include "siamese/ops/muon.h"
#include "siamese/train/adamw.h"
#include "siamese/train/freeze.h"
#include "siamese/train/muon.h"

namespace siamese::train {
namespace optimizer_test {

TEST(Optimizer, DecayFollowsTheKindNotTheName) {
  nn::Parameters parameters(1);
  const nn::Scope root(parameters);
  const std::pair<const char*, nn::ParameterKind> kinds[] = {{"norm_named_linear", nn::ParameterKind::linear},
                                                             {"weight", nn::ParameterKind::norm},
                                                             {"e", nn::ParameterKind::embedding},
                                                             {"b", nn::ParameterKind::bias},
                                                             {"s", nn::ParameterKind::scalar},
                                                             {"m", nn::ParameterKind::stream_mix}};
  for (const auto& [name, kind] : kinds) root.add(name, kind, {3}, nn::Init::ones());
  OptimConfig config;
  config.weight_decay = 0.5;
  config.decay.scalar = true;
  AdamW optimizer(config, parameters);
  for (const auto& parameter : parameters.list()) parameter.value.mutable_grad() = at::zeros({3});
  optimizer.step(0.1, 0);
  const double decayed = 1 - 0.1 * 0.5;
  for (const auto& parameter : parameters.list()) {
    const bool decays = parameter.kind == nn::ParameterKind::linear || parameter.kind == nn::ParameterKind::scalar;
    EXPECT_FLOAT_EQ(parameter.value[0].item<float>(), static_cast<float>(decays ? decayed : 1.0)) << parameter.name;
  }
}

TEST(Optimizer, ClipsByTheGlobalNorm) {
  nn::Parameters parameters(1);
  const nn::Scope root(parameters);
  root.add("a", nn::ParameterKind::norm, {4}, nn::Init::zeros());
  root.add("b", nn::ParameterKind::norm, {4}, nn::Init::zeros());
  for (const auto& parameter : parameters.list()) parameter.value.mutable_grad() = at::full({4}, 3.0F);
  AdamW optimizer({.clip = 1}, parameters);
  const double norm = std::sqrt(optimizer.squared_gradient_norm().item<double>());
  EXPECT_NEAR(norm, std::sqrt(8 * 9.0), 1e-9);
  optimizer.step(0.1, norm);
  // The first moment holds (1 - beta1) x the clipped gradient.
  EXPECT_NEAR(optimizer.state()[0].value[0].item<double>(), 0.1 * 3 / norm, 1e-7);
}

std::unique_ptr<models::Model> shapes_of(const RunConfig& config) {
  return models::make_model(config.model, config.init, 1, at::kMeta);
}

// What the owners of weights say of them: names and dimensions decide nothing.
TEST(Optimizer, MatricesBetweenHiddenStates) {
  using Rows = std::map<std::string, std::vector<int64_t>>;
  const auto matrices = [](const RunConfig& config) {
    Rows rows;
    const auto model = shapes_of(config);
    for (const auto& parameter : model->parameters().list()) {
      if (parameter.matrices.empty()) continue;
      EXPECT_EQ(parameter.kind, nn::ParameterKind::linear) << parameter.name;
      int64_t all = 0;
      for (const int64_t each : parameter.matrices) all += each;
      EXPECT_EQ(all, parameter.value.size(-2)) << parameter.name;
      if (!parameter.name.starts_with("blocks.1")) rows[parameter.name] = parameter.matrices;
    }
    return rows;
  };
  EXPECT_EQ(matrices(tiny_config({"model.kv_heads=1", "model.tied=false", "model.residual=hc"})),
            (Rows{{"blocks.0.attention.qkv.weight", {16, 8, 8}},
                  {"blocks.0.attention.out.weight", {16}},
                  {"blocks.0.ffn.in.weight", {64, 64}},
                  {"blocks.0.ffn.out.weight", {16}}}));
  EXPECT_EQ(matrices(tiny_family("moe")), (Rows{{"blocks.0.attention.qkv.weight", {16, 16, 16}},
                                                {"blocks.0.attention.out.weight", {16}},
                                                {"blocks.0.ffn.experts.in", {16, 16}},
                                                {"blocks.0.ffn.experts.out", {16}},
                                                {"blocks.0.ffn.shared.in.weight", {8, 8}},
                                                {"blocks.0.ffn.shared.out.weight", {16}}}));
  EXPECT_EQ(matrices(tiny_family("vit")), (Rows{{"blocks.0.attention.qkv.weight", {16, 16, 16}},
                                                {"blocks.0.attention.out.weight", {16}},
                                                {"blocks.0.ffn.in.weight", {64}},
                                                {"blocks.0.ffn.out.weight", {16}}}));
  EXPECT_EQ(matrices(tiny_family("dit")), (Rows{{"blocks.0.attention.qkv.weight", {16, 16, 16}},
                                                {"blocks.0.attention.out.weight", {16}},
                                                {"blocks.0.ffn.in.weight", {64}},
                                                {"blocks.0.ffn.out.weight", {16}},
                                                {"blocks.0.modulation.weight", {16, 16, 16, 16, 16, 16}},
                                                {"final.modulation.weight", {16, 16}},
                                                {"timestep.out.weight", {16}}}));
}

struct SmallSet {
  nn::Parameters parameters{1};
  std::vector<at::Tensor> before;

  SmallSet() {
    const nn::Scope root(parameters);
    const nn::Init init = nn::Init::normal(1, 0);
    root.add("pair", nn::ParameterKind::linear, {6, 4}, init, {4, 2});
    root.add("experts", nn::ParameterKind::linear, {2, 3, 4}, init, {3});
    root.add("head", nn::ParameterKind::linear, {5, 4}, init);
    root.add("table", nn::ParameterKind::embedding, {5, 4}, init);
    root.add("gain", nn::ParameterKind::norm, {4}, init);
    for (const auto& parameter : parameters.list()) {
      parameter.value.mutable_grad() = testing::randn(parameter.value.sizes(), 7, at::kFloat);
      before.push_back(parameter.value.detach().clone());
    }
  }
  at::Tensor now(size_t i) const { return parameters.list()[i].value.detach(); }
  at::Tensor gradient(size_t i) const { return parameters.list()[i].value.grad(); }
};

std::vector<std::string> names_of(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const auto& tensor : optimizer.state()) names.push_back(tensor.name);
  return names;
}

TEST(Optimizer, MuonTakesMatricesAndLeavesTheRestToAdamW) {
  const SmallSet set;
  OptimConfig config;
  config.name = OptimizerName::muon;
  config.weight_decay = 0.5;
  config.clip = 0;
  config.lr_scale.linear = 0.5;
  config.lr_scale.norm = 3;
  config.muon.lr_scale = 4;
  config.muon.momentum = 0.8;
  config.muon.scale = ops::MuonScale::original;
  const auto optimizer = make_optimizer(config, set.parameters);
  EXPECT_EQ(names_of(*optimizer), (std::vector<std::string>{"m.pair", "m.experts", "m.head", "v.head", "m.table",
                                                            "v.table", "m.gain", "v.gain"}));
  optimizer->step(0.1, 1);
  EXPECT_EQ(optimizer->applied_steps(), 1);
  const ops::MuonArguments muon{.lr = 0.1, .momentum = 0.8, .scale = ops::MuonScale::original};
  for (const size_t i : {0U, 1U}) {
    const at::Tensor wanted = set.before[i].clone();
    const std::vector<int64_t>& rows = set.parameters.list()[i].matrices;
    ops::muon_step(muon, {{set.gradient(i), wanted, at::zeros_like(wanted), rows, 0.5, 2}});
    testing::expect_same_bits(set.now(i), wanted, set.parameters.list()[i].name);
  }
  for (const size_t i : {2U, 3U, 4U}) {
    const at::Tensor wanted = set.before[i].clone();
    const double decay = i == 2 ? 0.5 : 0, rate = i == 2 ? 0.5 : i == 4 ? 3 : 1;
    ops::adamw_step({.lr = 0.1},
                    {{set.gradient(i), wanted, at::zeros_like(wanted), at::zeros_like(wanted), decay, rate}});
    testing::expect_same_bits(set.now(i), wanted, set.parameters.list()[i].name);
  }
}

TEST(Optimizer, NumbersAndOperationsAreCounted) {
  const SmallSet set;
  OptimConfig config;
  EXPECT_EQ(numbers_kept(config, set.parameters), 4 * (24 + 24 + 20 + 20 + 4));
  EXPECT_EQ(optimizer_flops(config, set.parameters), 0);
  config.name = OptimizerName::muon;
  EXPECT_EQ(numbers_kept(config, set.parameters), 4 * (20 + 20 + 4) + 3 * (24 + 24));
  const auto flops = ops::newton_schulz_flops;
  EXPECT_EQ(optimizer_flops(config, set.parameters), flops(4, 4) + flops(2, 4) + 2 * flops(3, 4));
  freeze({"experts", "head"}, set.parameters);
  EXPECT_EQ(numbers_kept(config, set.parameters), 24 + 20 + 4 * (20 + 4) + 3 * 24);
  EXPECT_EQ(optimizer_flops(config, set.parameters), flops(4, 4) + flops(2, 4));
}

TEST(Freeze, FrozenParametersHaveNoPartInAStep) {
  for (const OptimizerName name : {OptimizerName::adamw, OptimizerName::muon}) {
    const SmallSet set;
    freeze({"linear", "!head", "ta*"}, set.parameters);
    OptimConfig config;
    config.name = name;
    config.decay.embedding = true;
    const auto optimizer = make_optimizer(config, set.parameters);
    EXPECT_EQ(names_of(*optimizer), (std::vector<std::string>{"m.head", "v.head", "m.gain", "v.gain"}));
    EXPECT_NEAR(optimizer->squared_gradient_norm().item<double>(),
                set.gradient(2).square().sum().item<double>() + set.gradient(4).square().sum().item<double>(), 1e-4);
    optimizer->step(0.1, 1);
    for (const size_t i : {0U, 1U, 3U}) testing::expect_same_bits(set.now(i), set.before[i], "frozen");
    for (const size_t i : {2U, 4U}) EXPECT_GT(testing::largest_difference(set.now(i), set.before[i]), 1e-3);
  }
}

TEST(Freeze, EntriesAreGoneThroughInOrder) {
  const SmallSet set;  // pair, experts, head, table, gain
  const auto of = [&](const std::vector<std::string>& entries) { return frozen(entries, set.parameters); };
  EXPECT_EQ(of({}), (std::vector<bool>{false, false, false, false, false}));
  EXPECT_EQ(of({"linear"}), (std::vector<bool>{true, true, true, false, false}));
  EXPECT_EQ(of({"*", "!gain"}), (std::vector<bool>{true, true, true, true, false}));
  EXPECT_EQ(of({"!gain", "*", "!*a*", "pair"}), (std::vector<bool>{true, true, false, false, false}));
  const auto refusal = [&](const std::vector<std::string>& entries) -> std::string {
    try {
      of(entries);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refusal({"linear", "gainn"}),
            "optim.freeze: expected a kind or a pattern of names that some parameter of this model has, got 'gainn' "
            "(did you mean 'gain'?)");
  EXPECT_NE(refusal({"scalar"}).find("got 'scalar'"), std::string::npos);  // a kind that is not there
  EXPECT_NE(refusal({"*", "!blocks.*"}).find("got '!blocks.*'"), std::string::npos);
  EXPECT_EQ(refusal({"*"}), "optim.freeze: expected parameters that are left to train, got all 5 frozen");
}

TEST(Freeze, AConfigIsRefusedBeforeAnythingIsMade) {
  EXPECT_NO_THROW(tiny_config({"optim.freeze=[linear, 'blocks.*.input_norm.weight']"}));
  try {
    tiny_config({"optim.freeze=blocks.*.z_norm.weight"});
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("optim.freeze: expected a kind or a pattern"), std::string::npos)
        << error.what();
  }
}

}  // namespace optimizer_test
}  // namespace siamese::train

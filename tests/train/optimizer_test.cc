#include "siamese/train/optimizer.h"

#include "tests/support/tensors.h"

namespace siamese::train {
namespace {

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

}  // namespace
}  // namespace siamese::train

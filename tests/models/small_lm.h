// A small language model under any scheme, for tests.
#pragma once

#include <memory>
#include <string>

#include "tests/support/schemes.h"
#include "tests/support/tensors.h"

#include <c10/core/GradMode.h>

#include "siamese/models/lm.h"
#include "siamese/models/registry.h"

namespace siamese::models {

inline ModelConfig small_config(const std::string& scheme) {
  ModelConfig config;
  config.residual = scheme;
  config.width = 24;
  config.blocks = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.ffn_width = 40;
  config.vocab = 19;
  config.context = 12;
  resolve(config, {});
  return config;
}

inline std::unique_ptr<LanguageModel> make_lm(const ModelConfig& config, uint64_t seed = 1,
                                              at::ScalarType dtype = at::kFloat) {
  nn::InitConfig init;
  init.rule = nn::InitRule::normal;
  init.std = 0.2;  // large enough that every part matters
  return std::make_unique<LanguageModel>(config, init, nn::Parameters(seed, dtype));
}

// Moves every parameter a little: what starts at 0 (HC's W, mHC's phi) would hide the gradient of what multiplies it.
inline void perturb(const Model& model) {
  const c10::NoGradGuard no_grad;
  uint64_t seed = 700;
  for (const auto& parameter : model.parameters().list()) {
    parameter.value.add_(testing::randn(parameter.value.sizes(), ++seed).to(parameter.value.scalar_type()), 0.02);
  }
}

// Random tokens that count everywhere.
inline Inputs random_inputs(const ModelConfig& config, int64_t batch, uint64_t seed) {
  at::Tensor tokens = at::empty({batch, config.context + 1}, at::kLong);
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.mutable_data_ptr<int64_t>()[i] =
        static_cast<int64_t>(random_below(static_cast<uint64_t>(config.vocab), seed, 5, static_cast<uint64_t>(i)));
  }
  return {tokens, at::Tensor()};
}

// The loss and every parameter's gradient.
inline std::pair<double, std::vector<at::Tensor>> loss_and_gradients(const Model& model, const Inputs& inputs,
                                                                     const LossOptions& options) {
  model.parameters().zero_grad();
  const Losses losses = model.losses(inputs, options);
  losses.objective.backward();
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : model.parameters().list()) gradients.push_back(parameter.value.grad());
  return {losses.objective.item<double>(), gradients};
}

}  // namespace siamese::models

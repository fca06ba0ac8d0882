// A small model of every family under any scheme, for tests.
#pragma once

#include "tests/models/small_lm.h"

#include "siamese/models/dit.h"
#include "siamese/models/vit.h"

namespace siamese::models {

inline const std::vector<Family>& all_families() {
  static const std::vector<Family> families = {Family::lm, Family::moe, Family::vit, Family::dit};
  return families;
}

// Of all schemes, those that the family takes.
inline std::vector<std::string> schemes_of(Family family) {
  return ModelConfig{.family = family}.causal() ? testing::causal_schemes() : testing::all_schemes();
}

inline ModelConfig small_family(Family family, const std::string& scheme) {
  if (family == Family::lm) return small_config(scheme);
  ModelConfig config;
  config.family = family;
  config.residual = scheme;
  config.width = 24;
  config.blocks = 3;
  config.heads = 4;
  if (family == Family::moe) {
    config.ffn_width = 20;
    config.experts = 5;
    config.experts_per_token = 2;
    config.shared_width = 12;
    config.vocab = 19;
    config.context = 12;
  } else {
    config.ffn = family == Family::vit ? nn::FeedForwardKind::gelu : nn::FeedForwardKind::gelu_tanh;
    config.ffn_width = 40;
    config.norm = nn::NormKind::layer;
    config.norm_eps = 1e-6;
    config.bias = true;
    config.image = 6;
    config.patch = 2;
    config.channels = 3;
    config.classes = 7;
  }
  resolve(config, {});
  return config;
}

// The family's small model with values of earlier blocks, in each way that there is (nn/value_carry.h).
inline std::vector<ModelConfig> value_mixings(Family family) {
  std::vector<ModelConfig> configs;
  for (const nn::ValueMixing& mixing :
       {nn::ValueMixing{.residual = nn::ValueResidual::half}, nn::ValueMixing{.residual = nn::ValueResidual::learned},
        nn::ValueMixing{.depth_stride = 2}, nn::ValueMixing{.depth_stride = 3, .depth_recent = 1}}) {
    ModelConfig& config = configs.emplace_back(small_family(family, "siamese"));
    config.value_residual = mixing.residual;
    config.depth_attention_stride = mixing.depth_stride;
    config.depth_attention_recent = mixing.depth_recent;
  }
  return configs;
}

inline nn::InitConfig large_init() {
  nn::InitConfig init;
  init.rule = nn::InitRule::normal;
  init.std = 0.2;  // large enough that every part matters
  return init;
}

inline std::unique_ptr<Model> make_small(const ModelConfig& config, uint64_t seed = 1,
                                         at::ScalarType dtype = at::kFloat) {
  return make_model(config, large_init(), seed, at::kCPU, dtype);
}

inline Inputs family_inputs(const ModelConfig& config, int64_t batch, uint64_t seed) {
  if (!config.sees_images()) return random_inputs(config, batch, seed);
  Inputs inputs;
  inputs.images = testing::randn({batch, config.channels, config.image, config.image}, seed, at::kFloat).clamp(-1, 1);
  inputs.labels = (at::arange(batch, at::kLong) * 3 + static_cast<int64_t>(seed)) % config.classes;
  inputs.first_position = 100;
  return inputs;
}

// As in training, a step of one micro-batch.
inline LossOptions family_options(const ModelConfig& config, int64_t batch) {
  LossOptions options;
  options.normalizer = static_cast<double>(config.sees_images() ? batch : batch * config.context);
  options.balance_loss = 0.01;
  options.router_z_loss = 0.001;
  options.training = true;
  options.seed = 5;
  return options;
}

inline std::string case_name(Family family, const std::string& scheme) {
  return std::string(enum_text(family)) + " " + scheme;
}

}  // namespace siamese::models

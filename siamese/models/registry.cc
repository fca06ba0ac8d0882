#include "siamese/models/registry.h"

#include <ATen/ATen.h>

#include "siamese/models/dit.h"
#include "siamese/models/lm.h"
#include "siamese/models/vit.h"

namespace siamese::models {

namespace registry_detail {

std::unique_ptr<Model> build(const ModelConfig& config, const nn::InitConfig& init, const nn::Parameters& parameters) {
  switch (config.family) {
    case Family::vit:
      return std::make_unique<VisionTransformer>(config, init, parameters);
    case Family::dit:
      return std::make_unique<DiffusionTransformer>(config, init, parameters);
    case Family::lm:
    case Family::moe:
      break;
  }
  return std::make_unique<LanguageModel>(config, init, parameters);
}

}  // namespace registry_detail

std::unique_ptr<Model> make_model(const ModelConfig& config, const nn::InitConfig& init,
                                  const nn::Parameters& parameters) {
  auto model = registry_detail::build(config, init, parameters);
  parameters.expect_all_used();
  return model;
}

std::unique_ptr<Model> make_model(const ModelConfig& config, const nn::InitConfig& init, uint64_t seed,
                                  at::Device device, at::ScalarType dtype) {
  return make_model(config, init, nn::Parameters(seed, dtype, device));
}

}  // namespace siamese::models

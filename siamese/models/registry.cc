#include "siamese/models/registry.h"

#include <ATen/ATen.h>

#include "siamese/models/dit.h"
#include "siamese/models/lm.h"
#include "siamese/models/vit.h"

namespace siamese::models {

std::unique_ptr<Model> make_model(const ModelConfig& config, const nn::InitConfig& init, uint64_t seed,
                                  at::Device device, at::ScalarType dtype) {
  nn::Parameters parameters(seed, dtype, device);
  switch (config.family) {
    case Family::vit:
      return std::make_unique<VisionTransformer>(config, init, std::move(parameters));
    case Family::dit:
      return std::make_unique<DiffusionTransformer>(config, init, std::move(parameters));
    case Family::lm:
    case Family::moe:
      break;
  }
  return std::make_unique<LanguageModel>(config, init, std::move(parameters));
}

}  // namespace siamese::models

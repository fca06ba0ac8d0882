// Families by name: one explicit list.
#pragma once

#include <memory>

#include "siamese/models/config.h"
#include "siamese/models/model.h"

namespace siamese::models {

// `config` must be resolved. Device meta gives shapes only: counting parameters without memory.
std::unique_ptr<Model> make_model(const ModelConfig& config, const nn::InitConfig& init, uint64_t seed,
                                  at::Device device = at::kCPU, at::ScalarType dtype = at::kFloat);

// On parameters of the caller's: fresh ones, or tensors that somebody else owns (nn/parameters.h).
std::unique_ptr<Model> make_model(const ModelConfig& config, const nn::InitConfig& init,
                                  const nn::Parameters& parameters);

}  // namespace siamese::models

// Parameters <-> model.safetensors, under our own names (docs/checkpoints.md).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/parameters.h"

namespace siamese::models {

struct NamedTensor {
  std::string name;
  at::Tensor value;
};

void save_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                  const std::map<std::string, std::string>& metadata);

// Fills `tensors` in place. DataError listing every missing, extra and misshapen tensor; then nothing is changed.
void load_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

std::vector<NamedTensor> named_values(const nn::Parameters& parameters);

}  // namespace siamese::models

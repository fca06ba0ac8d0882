// What is said of a model that is converted, and by whom. Lowest first: config.json beside the weights (hf-* layouts),
// config.yaml beside them, their metadata, --config, overrides. What the tensors and the layout itself tell lies below
// (formats/settings).
#pragma once

#include <string>
#include <vector>

#include "siamese/formats/settings.h"
#include "siamese/io/tensor_files.h"
#include "siamese/train/config.h"

namespace siamese::cli {

struct ConvertConfig {
  train::RunConfig config;
  std::vector<formats::Assumption> assumed;
  std::vector<std::string> notes;
};

// `given` is --config: a YAML file or recipe, a checkpoint, run directory or folder with config.json, a config.json;
// "" for none. `to` helps to read a config.json that does not say what it is.
ConvertConfig convert_config(const io::TensorFiles& files, const formats::StoredTensors& stored, formats::Layout to,
                             const std::string& given, const std::vector<std::string>& overrides);

}  // namespace siamese::cli

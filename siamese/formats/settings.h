// The config of a model that is converted, from everybody who knows something of it, and whether a model is what a
// layout means. Lowest first:
//   what the layout's authors document < what the tensors tell < what the layout means (its fixed settings) < what is
//   said: metadata, config.json, config.yaml, --config, overrides
#pragma once

#include <string>
#include <vector>

#include "siamese/config/value.h"
#include "siamese/formats/stored.h"
#include "siamese/models/config.h"

namespace siamese::formats {

// A value that nobody said and no tensor tells.
struct Assumption {
  std::string key;  // "model.norm_eps"
  std::string value;
  std::string why;
};

struct ModelSettings {
  config::Value model;  // keys of the model section, to be read and resolved
  std::vector<Assumption> assumed;
};

// `said`: keys of the model section; `defaults`: those that a config.json leaves to transformers. UsageError naming
// every key that decides what the model computes and that nobody told; DataError when the tensors have other names than
// the layout's.
ModelSettings model_settings(const StoredTensors& stored, const config::Value& said,
                             const config::Value& defaults = config::Value::map());

// A line for each key in which `config` (resolved) is not what a file of `layout` means or its authors document, and
// which its names do not carry: the same file elsewhere would be another function.
std::vector<std::string> differences(Layout layout, const models::ModelConfig& config);

// UsageError naming key, expected, got when `config` (resolved) is not what `layout` means.
void check_export(Layout layout, const models::ModelConfig& config);

// What the metadata of a file says of its model: `model`, or the scheme alone; an empty map when nothing.
config::Value said_by_metadata(const io::TensorFiles& files);

// DataError naming key and both values when `model`, keys of the model section as `config_file` has them, is another
// function than the weights were saved under: a rope_theta or norm_eps fits any shape. What only training or a longer
// context asks for may differ. Files that do not say pass.
void check_saved_model(const io::TensorFiles& files, const config::Value& model, const std::string& config_file);

}  // namespace siamese::formats

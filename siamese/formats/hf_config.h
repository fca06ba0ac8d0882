// config.json of the transformers package <-> the model section. What would change the function and is not ours
// (another activation, biases, other scalings of rotary frequencies, a head width of its own) is refused by its key.
// That of layout hf holds the model section itself, under the key `model`.
#pragma once

#include <string>
#include <string_view>

#include "siamese/config/value.h"
#include "siamese/formats/layout.h"
#include "siamese/models/config.h"

namespace siamese::formats {

struct HfConfig {
  config::Value model;     // keys of the model section that it says
  config::Value defaults;  // those that it leaves to the package: old files have no rope_theta and mean 10000
  // hf-qwen2: tokens that some of the blocks look back on at most (sliding_window); ours have one window. A context of
  // so many is not changed by it, and `model` has no longer one. 0: all
  int64_t window = 0;
};

// `file` is what errors call it, DataError. All but hf-gpt2 and hf share their keys; a `model_type` of
// another architecture than the layout's is refused.
HfConfig read_hf_config(Layout layout, std::string_view json, const std::string& file);

// The layout whose config.json this is, by its `model_type`; `otherwise` when that is none of ours.
Layout layout_of_hf_config(std::string_view json, const std::string& file, Layout otherwise);
// The same; DataError naming those that we have when it is none of them.
Layout layout_of_hf_config(std::string_view json, const std::string& file);

// The other way. `torch_dtype` is transformers' name ("bfloat16").
std::string hf_config_text(Layout layout, const models::ModelConfig& config, std::string_view torch_dtype);

}  // namespace siamese::formats

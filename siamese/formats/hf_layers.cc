#include "siamese/formats/hf_layers.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "siamese/config/fields.h"
#include "siamese/formats/hf_rope.h"

namespace siamese::formats {
namespace {

using nlohmann::json;

constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

// The shortest text that gives these letters when it is repeated, in one pass: what is left of them without the longest
// beginning that is also their end (the last one may be cut).
std::string pattern_of(const std::string& letters) {
  std::vector<size_t> border(letters.size(), 0);  // of the letters up to here
  for (size_t i = 1; i < letters.size(); ++i) {
    size_t length = border[i - 1];
    while (length > 0 && letters[i] != letters[length]) length = border[length - 1];
    border[i] = letters[i] == letters[length] ? length + 1 : 0;
  }
  return letters.substr(0, letters.size() - border.back());
}

// A letter for each block.
std::string letters_of(const HfReader& reader, const json& types) {
  const auto expected = std::string("a list of ") + kSliding + " and " + kFull + ", one for each block";
  const json* const blocks = reader.find("num_hidden_layers");
  const bool counted = types.is_array() && !types.empty() && (blocks == nullptr || *blocks == types.size());
  if (!counted) reader.refuse("layer_types", expected, types);
  std::string letters;
  for (const json& type : types) {
    if (type != kSliding && type != kFull) reader.refuse("layer_types", expected, type);
    letters += type == kSliding ? 'S' : 'F';
  }
  return letters;
}

void read_windows(HfReader& reader) {
  const json* const types = reader.find("layer_types");
  const std::string letters = types != nullptr ? letters_of(reader, *types) : "SSSF";
  if (letters.find('S') == std::string::npos) return;
  if (reader.find("sliding_window") == nullptr) {
    reader.refuse("sliding_window", "a whole number >= 1 beside sliding layers", nullptr);
  }
  reader.take_size("sliding_window", "window");
  const std::string pattern = pattern_of(letters);
  if (pattern != "S") reader.put("window_pattern", config::Value::scalar(pattern));
}

}  // namespace

void read_layers(HfReader& reader) {
  read_windows(reader);
  std::string scaling = "none";
  reader.take_number("rope_theta", "rope_theta");
  const auto read_full = [&](const std::string& key, const json& rope) {
    const std::string own = rope_scaling_of_hf(rope, reader.object(), key, reader.file());
    if (own != "none") scaling = own;
    const auto theta = rope.find("rope_theta");
    if (theta != rope.end()) reader.put_number(key + ".rope_theta", *theta, "rope_theta");
  };
  if (const json* const rope = reader.find("rope_scaling")) read_full("rope_scaling", *rope);
  if (const json* const rope = reader.find("rope_parameters")) {
    const bool by_layer = rope->is_object() && (rope->contains(kFull) || rope->contains(kSliding));
    const json* const full = by_layer && rope->contains(kFull) ? &rope->at(kFull) : nullptr;
    const json* const sliding = by_layer && rope->contains(kSliding) ? &rope->at(kSliding) : nullptr;
    const std::string full_key = std::string("rope_parameters.") + kFull;
    const std::string sliding_key = std::string("rope_parameters.") + kSliding;
    if (!by_layer) read_full("rope_parameters", *rope);
    if (full != nullptr) read_full(full_key, *full);
    if (full != nullptr && full->contains("truncate") && full->at("truncate") != true) {
      reader.refuse(full_key + ".truncate", "true: the package does not look for it there", full->at("truncate"));
    }
    if (sliding != nullptr) {
      if (rope_scaling_of_hf(*sliding, reader.object(), sliding_key, reader.file()) != "none") {
        reader.refuse(sliding_key + ".rope_type", "default: sliding layers are not scaled", *sliding);
      }
      const auto theta = sliding->find("rope_theta");
      const bool other = theta != sliding->end() && full != nullptr && full->contains("rope_theta") &&
                         full->at("rope_theta") != *theta;
      if (other) reader.refuse(sliding_key + ".rope_theta", "that of full layers", *theta);
      if (theta != sliding->end()) reader.put_number(sliding_key + ".rope_theta", *theta, "rope_theta");
    }
  }
  reader.require("partial_rotary_factor", {1.0});
  if (scaling == "none") return;
  reader.put("rope_scaling", config::Value::scalar(scaling));
  reader.put("rope_scaling_layers", config::print(models::RopeScalingLayers::full));
}

void read_archspace(HfReader& reader) {
  reader.require("use_siamese_norm", {true});
  reader.require("siamese_norm_variant", {"hybrid_pre"});
  reader.require("qk_norm", {true});
  reader.require("qk_norm_mode", {"full_projection"});
  reader.require("use_depth_attention", {true, false});
  const json* const used = reader.find("use_depth_attention");
  if (used != nullptr && *used == false) return;
  if (reader.find("depth_attention_stride") == nullptr) {
    reader.refuse("depth_attention_stride", "a whole number >= 1, or use_depth_attention false", nullptr);
  }
  reader.take_size("depth_attention_stride", "depth_attention_stride");
  const json* const recent = reader.find("depth_attention_recent_window");
  if (recent != nullptr && *recent != 0) reader.take_size("depth_attention_recent_window", "depth_attention_recent");
}

nlohmann::ordered_json window_or_null(int64_t window) {
  return window > 0 ? nlohmann::ordered_json(window) : nlohmann::ordered_json();
}

nlohmann::ordered_json layered_rope(const models::ModelConfig& config) {
  models::ModelConfig plain = config;
  plain.rope_scaling = "none";
  return {{kFull, hf_rope_parameters(config)}, {kSliding, hf_rope_parameters(plain)}};
}

void add_layers(const models::ModelConfig& config, nlohmann::ordered_json& text) {
  nlohmann::ordered_json types = nlohmann::ordered_json::array();
  int64_t window = 0;
  for (int64_t block = 0; block < config.blocks; ++block) {
    types.push_back(config.slides(block) ? kSliding : kFull);
    window = std::max(window, config.window_of(block));
  }
  text["sliding_window"] = window_or_null(window);
  text["layer_types"] = types;
}

void add_archspace(const models::ModelConfig& config, nlohmann::ordered_json& text) {
  text.update({{"true_vocab_size", config.vocab},
               {"qk_norm", true},
               {"qk_norm_mode", "full_projection"},
               {"use_siamese_norm", true},
               {"siamese_norm_variant", "hybrid_pre"},
               {"rope_full_precision", true},
               {"use_depth_attention", config.depth_attention_stride > 0}});
  if (config.depth_attention_stride == 0) return;
  text["depth_attention_stride"] = config.depth_attention_stride;
  text["depth_attention_recent_window"] = config.depth_attention_recent;
}

}  // namespace siamese::formats

#include "siamese/formats/hf_rope.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"
#include "siamese/models/rope_scaling.h"

namespace siamese::formats {
namespace {

using nlohmann::json;
using nn::RopeScaling;
using nn::RopeScalingKind;

class RopeReader {
 public:
  RopeReader(const json& rope, const json& outer, std::string key, const std::string& file)
      : rope_(rope), outer_(outer), key_(std::move(key)), file_(file) {}

  std::string text() {
    const std::string kind = type();
    refuse_unless(
        "partial_rotary_factor", [](const json& value) { return value == 1; }, "1");
    if (kind == "default") return "none";
    RopeScaling scaling;
    scaling.kind = kind == "llama3" ? RopeScalingKind::llama3 : RopeScalingKind::yarn;
    scaling.context = first_context();
    scaling.factor = has("factor") ? number("factor") : whole_context() / static_cast<double>(scaling.context);
    if (kind == "llama3") {
      scaling.low = has("low_freq_factor") ? number("low_freq_factor") : scaling.low;
      scaling.high = has("high_freq_factor") ? number("high_freq_factor") : scaling.high;
    } else {
      read_yarn(scaling);
    }
    try {
      const std::string text = models::rope_scaling_text(scaling);
      models::rope_scaling_of(text);  // refuses what cannot be
      return text;
    } catch (const UsageError& error) {
      throw DataError(file_ + ": " + key_ + ": " + error.what());
    }
  }

 private:
  bool has(const char* name) const { return rope_.contains(name) && !rope_.at(name).is_null(); }

  [[noreturn]] void refuse(const std::string& name, const std::string& expected, const json& got) const {
    throw DataError(file_ + ": " + key_ + "." + name + ": expected " + expected + ", got " +
                    io::in_quotes(io::json_text(got)));
  }
  template <class Ok>
  void refuse_unless(const char* name, Ok ok, const std::string& expected) const {
    if (has(name) && !ok(rope_.at(name))) refuse(name, expected, rope_.at(name));
  }
  double number(const char* name) const {
    const json& value = rope_.at(name);
    if (!value.is_number() || !(value.get<double>() > 0)) refuse(name, "a number > 0", value);
    return value.get<double>();
  }
  std::string type() const {
    std::string found = "default";
    for (const char* const name : {"type", "rope_type"}) {
      if (!has(name)) continue;
      const json& value = rope_.at(name);
      if (value != "default" && value != "llama3" && value != "yarn") refuse(name, "default, llama3 or yarn", value);
      found = value.get<std::string>();
    }
    return found;
  }
  double whole_context() const {
    const auto found = outer_.find("max_position_embeddings");
    if (found == outer_.end() || !found->is_number_unsigned()) {
      refuse("original_max_position_embeddings", "a whole number, as there is no max_position_embeddings", nullptr);
    }
    return found->get<double>();
  }
  int64_t first_context() const {
    constexpr const char* kName = "original_max_position_embeddings";
    const auto outside = outer_.find(kName);
    const json* value = nullptr;
    if (outside != outer_.end() && !outside->is_null()) {
      value = &*outside;
    } else if (has(kName)) {
      value = &rope_.at(kName);
    }
    if (value == nullptr) return static_cast<int64_t>(whole_context());
    if (!value->is_number_unsigned() || *value < 1) refuse(kName, "a whole number >= 1", *value);
    return value->get<int64_t>();
  }
  void read_yarn(RopeScaling& scaling) const {
    if (has("beta_fast")) scaling.beta_fast = number("beta_fast");
    if (has("beta_slow")) scaling.beta_slow = number("beta_slow");
    refuse_unless(
        "truncate", [](const json& value) { return value.is_boolean(); }, "true or false");
    if (has("truncate")) scaling.truncate = rope_.at("truncate").get<bool>();
    if (has("attention_factor")) {
      scaling.attention_factor = number("attention_factor");
    } else if (has("mscale") && has("mscale_all_dim") && rope_.at("mscale") != 0 && rope_.at("mscale_all_dim") != 0) {
      const auto magnitude = [&](double scale) {
        return scaling.factor <= 1 ? 1 : 0.1 * scale * std::log(scaling.factor) + 1;
      };
      scaling.attention_factor = magnitude(number("mscale")) / magnitude(number("mscale_all_dim"));
    }
  }

  const json& rope_;
  const json& outer_;
  std::string key_;
  const std::string& file_;
};

void add_arguments(const RopeScaling& scaling, nlohmann::ordered_json& object) {
  object["factor"] = scaling.factor;
  object["original_max_position_embeddings"] = scaling.context;
  if (scaling.kind == RopeScalingKind::llama3) {
    object["low_freq_factor"] = scaling.low;
    object["high_freq_factor"] = scaling.high;
    return;
  }
  object["beta_fast"] = scaling.beta_fast;
  object["beta_slow"] = scaling.beta_slow;
  object["truncate"] = scaling.truncate;
  if (scaling.attention_factor > 0) object["attention_factor"] = scaling.attention_factor;
}

}  // namespace

std::string rope_scaling_of_hf(const json& rope, const json& outer, const std::string& key, const std::string& file) {
  if (!rope.is_object()) {
    throw DataError(file + ": " + key + ": expected an object of keys, got " + io::in_quotes(io::json_text(rope)));
  }
  return RopeReader(rope, outer, key, file).text();
}

nlohmann::ordered_json hf_rope_parameters(const models::ModelConfig& config) {
  const RopeScaling scaling = models::rope_scaling_of(config.rope_scaling);
  const bool plain = scaling.kind == RopeScalingKind::none;
  nlohmann::ordered_json object = {{"rope_type", plain ? "default" : std::string(enum_text(scaling.kind))},
                                   {"rope_theta", config.rope_theta}};
  if (!plain) add_arguments(scaling, object);
  return object;
}

nlohmann::ordered_json hf_rope_scaling(const models::ModelConfig& config) {
  nlohmann::ordered_json object = hf_rope_parameters(config);
  if (object["rope_type"] == "default") return nullptr;
  return object;
}

}  // namespace siamese::formats

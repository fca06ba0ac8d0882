#include "siamese/formats/settings.h"

#include <algorithm>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/formats/infer.h"
#include "siamese/io/llama2c.h"
#include "siamese/models/rope_scaling.h"

namespace siamese::formats {
namespace {

bool says(const config::Value& model, std::string_view key, std::string_view value) {
  const config::Value* const found = model.find(key);
  return found != nullptr && found->text == value;
}

// The keys that decide what a model computes and that no shape tells. (The default of a key is no knowledge.)
std::vector<std::string> needed_keys(const config::Value& model) {
  std::vector<std::string> keys = {"residual", "width", "blocks", "heads", "ffn", "norm", "norm_eps"};
  const bool images = says(model, "family", "vit") || says(model, "family", "dit");
  if (images) {
    keys.insert(keys.end(), {"patch", "image", "channels", "classes"});
    if (says(model, "family", "dit")) keys.insert(keys.end(), {"label_dropout", "learn_sigma"});
  } else {
    keys.emplace_back("vocab");
    if (!says(model, "positions", "learned")) keys.emplace_back("rope_theta");
  }
  if (says(model, "family", "moe")) keys.insert(keys.end(), {"experts_per_token", "renormalise"});
  return keys;
}

void require_known(const config::Value& model) {
  std::vector<std::string> unknown;
  std::vector<std::string> ways;
  for (const std::string& key : needed_keys(model)) {
    if (model.find(key) != nullptr) continue;
    unknown.push_back("model." + key);
    ways.push_back("model." + key + "=...");
  }
  if (unknown.empty()) return;
  throw UsageError(join(unknown) + ": the tensors do not tell " + (unknown.size() > 1 ? "them" : "it") + "; give " +
                   join(ways, " ") + ", or --config");
}

}  // namespace

ModelSettings model_settings(const StoredTensors& stored, const config::Value& said, const config::Value& defaults) {
  const LayoutTable& table = table_of(stored.layout());
  ModelSettings settings{config::Value::map(), {}};
  config::Value known = config::Value::map();
  for (const Setting& setting : table.fixed) {
    known[setting.key] = config::Value::scalar(std::string(setting.value));
  }
  known = config::in_layer(std::move(known), config::kStoredLayer);
  config::merge(known, said);
  // What a layout means stands above what its tensors seem to tell: a file without any v_norm lacks them.
  config::Value told = config::in_layer(told_by_tensors(stored, known), config::kStoredLayer);
  config::merge(told, known);
  const auto assume = [&](std::string_view key, const std::string& value, const std::string& why) {
    if (told.find(key) != nullptr) return;
    settings.model[key] = config::Value::scalar(value);
    settings.assumed.push_back({"model." + std::string(key), value, why});
  };
  for (const Setting& setting : table.documented) {
    assume(setting.key, std::string(setting.value), "documented for " + std::string(enum_text(stored.layout())));
  }
  for (const auto& [key, value] : defaults.entries)
    assume(key, value.text, "transformers' default, config.json has none");
  settings.model = config::in_layer(std::move(settings.model), config::kStoredLayer);
  config::merge(settings.model, told);
  require_known(settings.model);
  const bool text = says(settings.model, "family", "lm") || says(settings.model, "family", "moe");
  if (text) assume("context", std::to_string(models::ModelConfig().context), "the default: no tensor tells it");
  return settings;
}

namespace {

bool means(const config::Value& values, const Setting& setting) {
  const config::Value* const value = values.find(setting.key);
  SIAMESE_INVARIANT(value != nullptr);
  return value->text == setting.value || (!setting.alias.empty() && value->text == setting.alias);
}

std::string expectation(const config::Value& values, const Setting& setting, Layout layout) {
  return "model." + std::string(setting.key) + ": expected " + std::string(setting.value) +
         (setting.alias.empty() ? "" : " or " + std::string(setting.alias)) + " for layout " +
         std::string(enum_text(layout)) + ", got " + values.find(setting.key)->text;
}

}  // namespace

std::vector<std::string> differences(Layout layout, const models::ModelConfig& config) {
  const LayoutTable& table = table_of(layout);
  const config::Value values = config::print(config);
  std::vector<std::string> notes;
  for (const Setting& setting : table.fixed) {
    if (!means(values, setting)) notes.push_back(expectation(values, setting, layout));
  }
  if (is_hugging_face(layout)) return notes;  // whose config.json carries the rest
  for (const Setting& setting : table.documented) {
    if (setting.key == "norm_eps" && !means(values, setting)) notes.push_back(expectation(values, setting, layout));
  }
  return notes;
}

namespace {

// What differs from block to block, and what one block hands to others: a layout holds it in its config.json or not.
void check_blocks(Layout layout, const models::ModelConfig& config) {
  const LayoutTable& table = table_of(layout);
  const bool scaled = config.rope_scaling != "none";
  int64_t bounded = 0, unscaled = 0, scaled_in_window = 0;
  for (int64_t block = 0; block < config.blocks; ++block) {
    bounded += config.slides(block) && config.window < config.context ? 1 : 0;
    unscaled += scaled && !config.scales_rope(block) ? 1 : 0;
    scaled_in_window += scaled && config.scales_rope(block) && config.slides(block) ? 1 : 0;
  }
  const auto refuse_if = [&](bool wrong, const std::string& key, const std::string& expected, const std::string& got) {
    if (!wrong) return;
    throw UsageError("model." + key + ": expected " + expected + " for layout " + std::string(enum_text(layout)) +
                     ", got " + got);
  };
  refuse_if(table.windows == Windows::none && bounded > 0, "window",
            "0, or at least model.context (" + std::to_string(config.context) + "),", std::to_string(config.window));
  refuse_if(table.windows == Windows::one && bounded > 0 && bounded < config.blocks, "window_pattern", "S",
            config.window_pattern);
  refuse_if(table.windows != Windows::by_block && unscaled > 0, "rope_scaling_layers", "all", "full");
  refuse_if(table.windows == Windows::by_block && scaled_in_window > 0, "rope_scaling_layers", "full", "all");
  // Within the parameters of one kind of layer transformers does not look for it.
  refuse_if(table.windows == Windows::by_block && !models::rope_scaling_of(config.rope_scaling).truncate,
            "rope_scaling", "truncate=true", config.rope_scaling);
  refuse_if(!table.depth_attention && config.depth_attention_stride > 0, "depth_attention_stride", "0",
            std::to_string(config.depth_attention_stride));
  refuse_if(config.value_residual != nn::ValueResidual::none, "value_residual", "none",
            std::string(enum_text(config.value_residual)));
}

}  // namespace

void check_export(Layout layout, const models::ModelConfig& config) {
  const LayoutTable& table = table_of(layout);
  const config::Value values = config::print(config);
  for (const Setting& setting : table.fixed) {
    if (!means(values, setting)) throw UsageError(expectation(values, setting, layout));
  }
  if (layout != Layout::siamese && config.norm_spec().pointwise()) {
    throw UsageError("model.norm: expected rms or layer for layout " + std::string(enum_text(layout)) + ", got " +
                     std::string(enum_text(config.norm)) + ": it has no names for what it learns");
  }
  const std::string_view scheme = std::string_view(config.residual).substr(0, config.residual.find('('));
  if (!table.schemes.empty() && std::ranges::find(table.schemes, scheme) == table.schemes.end()) {
    throw UsageError("model.residual: expected " + join({table.schemes.begin(), table.schemes.end()}, " or ") +
                     ", with any options, for layout " + std::string(enum_text(layout)) + ", got " + config.residual +
                     ": the Python package siamesenorm loads a model of any scheme into transformers");
  }
  if (layout != Layout::siamese) check_blocks(layout, config);
  if (table.all_kv_heads && config.kv_heads != config.heads) {
    throw UsageError("model.kv_heads: expected " + std::to_string(config.heads) + " (model.heads) for layout " +
                     std::string(enum_text(layout)) + ", got " + std::to_string(config.kv_heads));
  }
}

config::Value said_by_metadata(const io::TensorFiles& files) {
  config::Value model = config::Value::map();
  const auto& metadata = files.metadata();
  if (const auto format = metadata.find("format"); format != metadata.end() && format->second == io::kLlama2cFormat) {
    for (const auto& [key, value] : metadata) {
      if (key != "format") model[key] = config::Value::scalar(value, files.path().string());
    }
    model["rope_theta"] = config::Value::scalar("10000", files.path().string());
  }
  if (const auto residual = metadata.find("residual"); residual != metadata.end()) {
    model["residual"] = config::Value::scalar(residual->second, files.path().string());
  }
  if (const auto text = metadata.find("model"); text != metadata.end()) {
    const std::string source = files.path().string() + " (metadata model)";
    try {
      const config::Value stored = config::parse_yaml(text->second, source);
      if (!stored.is_map()) throw DataError(source + ": expected a map of keys, got " + stored.kind_text());
      config::merge(model, stored);
    } catch (const UsageError& error) {
      throw DataError(error.what());
    }
  }
  return model;
}

namespace {

bool is_of_the_function(std::string_view key, const models::ModelConfig& saved, const models::ModelConfig& now) {
  if (key == "context") return saved.positions != models::Positions::rope;  // no more than how much is seen at once
  if (key == "label_dropout") return (saved.label_dropout > 0) != (now.label_dropout > 0);
  return key != "drop_path" && key != "norm_alpha" && !key.starts_with("dropout.");
}

}  // namespace

void check_saved_model(const io::TensorFiles& files, const config::Value& model, const std::string& config_file) {
  if (!files.metadata().contains("residual")) return;  // not written by us
  models::ModelConfig saved;
  const std::string name = files.path().string();
  std::vector<std::string> differences;
  try {
    config::read(said_by_metadata(files), "model", saved);
    models::ModelConfig now = saved;
    config::read(model, "model", now);
    const auto before = config::flatten(config::print(saved)), after = config::flatten(config::print(now));
    for (size_t i = 0; i < before.size(); ++i) {
      const auto& [key, text] = before[i];
      if (text == after[i].second || !is_of_the_function(key, saved, now)) continue;
      differences.push_back("model." + key + ": " + after[i].second + ", and the weights were saved under " + text);
    }
  } catch (const UsageError& error) {
    throw DataError(name + ": metadata: " + error.what());
  }
  if (differences.empty()) return;
  throw DataError(config_file + ": " + join(differences, "; ") + " (" + name + ")");
}

}  // namespace siamese::formats

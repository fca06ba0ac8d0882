#include "siamese/formats/hf_config.h"

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/config/fields.h"
#include "siamese/formats/hf_code.h"
#include "siamese/formats/hf_layers.h"
#include "siamese/formats/hf_reader.h"
#include "siamese/formats/hf_rope.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"

namespace siamese::formats {
namespace {

using nlohmann::json;

struct HfName {
  Layout layout;
  std::string_view model_type;
  std::string_view architecture;
};
constexpr HfName kHfNames[] = {{Layout::hf_llama, "llama", "LlamaForCausalLM"},
                               {Layout::hf_olmo2, "olmo2", "Olmo2ForCausalLM"},
                               {Layout::hf_gpt2, "gpt2", "GPT2LMHeadModel"},
                               {Layout::hf_qwen2, "qwen2", "Qwen2ForCausalLM"},
                               {Layout::hf_mistral, "mistral", "MistralForCausalLM"},
                               {Layout::hf_siamese, "siamese", "SiameseForCausalLM"},
                               {Layout::hf, "siamesenorm", "SiameseForCausalLM"},
                               {Layout::hf_olmo3, "olmo3", "Olmo3ForCausalLM"},
                               {Layout::archspace_olmo3, "olmo3_siamese_depth", "OLMo3SiameseDepthForCausalLM"}};

const HfName& hf_name(Layout layout) {
  for (const HfName& name : kHfNames) {
    if (name.layout == layout) return name;
  }
  SIAMESE_INVARIANT(!"a layout of transformers");
  return kHfNames[0];
}

json parse_object(std::string_view text, const std::string& file) {
  json parsed = io::read_json(text, file);
  if (!parsed.is_object()) throw DataError(file + ": expected an object of keys");
  return parsed;
}

bool has_layers(Layout layout) { return table_of(layout).windows == Windows::by_block; }

// Older files have rope_theta and rope_scaling, newer ones both in rope_parameters.
void read_rope(HfReader& reader) {
  reader.take_number("rope_theta", "rope_theta");
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    const json* const rope = reader.find(key);
    if (rope == nullptr) continue;
    const std::string scaling = rope_scaling_of_hf(*rope, reader.object(), key, reader.file());
    if (scaling != "none") reader.put("rope_scaling", config::Value::scalar(scaling));
    const auto theta = rope->find("rope_theta");
    if (theta != rope->end()) reader.put_number(std::string(key) + ".rope_theta", *theta, "rope_theta");
  }
  reader.require("partial_rotary_factor", {1.0});
}

void read_llama(HfReader& reader) {
  reader.take_size("hidden_size", "width");
  reader.take_size("num_hidden_layers", "blocks");
  reader.take_size("num_attention_heads", "heads");
  reader.take_size("num_key_value_heads", "kv_heads");
  reader.take_size("intermediate_size", "ffn_width");
  reader.take_size("vocab_size", "vocab");
  reader.take_size("max_position_embeddings", "context");
  reader.take_number("rms_norm_eps", "norm_eps");
  reader.take_flag("tie_word_embeddings", "tied");
  reader.require("hidden_act", {"silu"});
  reader.require("attention_bias", {false});
  reader.require("mlp_bias", {false});
  const json* const width = reader.find("hidden_size");
  const json* const heads = reader.find("num_attention_heads");
  if (width != nullptr && heads != nullptr) reader.require("head_dim", {width->get<int64_t>() / heads->get<int64_t>()});
}

// Attention that looks back on a window only is attention to all in a context no longer than it. In a longer one
// Mistral's blocks all have it; which of Qwen's (layer_types, max_window_layers) does not matter in the context that is
// said here.
int64_t read_window(Layout layout, HfReader& reader) {
  const json* const window = reader.find("sliding_window");
  const json* const used = reader.find("use_sliding_window");
  if (window == nullptr || (layout == Layout::hf_qwen2 && (used == nullptr || *used != true))) return 0;
  if (!window->is_number_integer() || *window < 1) reader.refuse("sliding_window", "a whole number >= 1", *window);
  const auto tokens = window->get<int64_t>();
  const json* const context = reader.find("max_position_embeddings");
  if (context != nullptr && *context <= tokens) return 0;
  if (layout == Layout::hf_mistral) {
    reader.put("window", config::print(tokens));
    return 0;
  }
  reader.put("context", config::print(tokens));
  return tokens;
}

void read_gpt2(HfReader& reader) {
  reader.take_size("n_embd", "width");
  reader.take_size("n_layer", "blocks");
  reader.take_size("n_head", "heads");
  reader.take_size("n_positions", "context");
  reader.take_size("n_inner", "ffn_width");  // null: 4 n_embd, which the tensors tell
  reader.take_size("vocab_size", "vocab");
  reader.take_number("layer_norm_epsilon", "norm_eps");
  reader.take_flag("tie_word_embeddings", "tied");
  reader.require("activation_function", {"gelu_new", "gelu_pytorch_tanh"});  // two names of one function
  reader.require("scale_attn_weights", {true});
  reader.require("scale_attn_by_inverse_layer_idx", {false});
  reader.require("add_cross_attention", {false});
}

// Layout hf keeps our own section, under our own keys; a section within it is an object.
config::Value ours_of(const HfReader& reader, const std::string& path, const json& value) {
  if (value.is_boolean()) return config::print(value.get<bool>());
  if (value.is_number_integer()) return config::print(value.get<int64_t>());
  if (value.is_number()) return config::print(value.get<double>());
  if (value.is_string()) return config::Value::scalar(value.get<std::string>());
  if (!value.is_object()) reader.refuse(path, "a number, text, true, false or a section", value);
  config::Value section = config::Value::map();
  for (const auto& [key, inner] : value.items()) section[key] = ours_of(reader, path + "." + key, inner);
  return section;
}

void read_ours(HfReader& reader) {
  const json* const model = reader.find("model");
  if (model == nullptr || !model->is_object()) {
    reader.refuse("model", "the model section of a siamese config", model != nullptr ? *model : json());
  }
  for (const auto& [key, value] : model->items()) reader.put(key, ours_of(reader, "model." + key, value));
}

template <config::HasFields Section>
nlohmann::ordered_json ours_as_json(const Section& section) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  Section::fields(section, [&](std::string_view key, const auto& field, const config::About&) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (NamedEnum<Field>) {
      object[std::string(key)] = std::string(enum_text(field));
    } else if constexpr (config::HasFields<Field>) {
      object[std::string(key)] = ours_as_json(field);
    } else {
      object[std::string(key)] = field;
    }
  });
  return object;
}

}  // namespace

HfConfig read_hf_config(Layout layout, std::string_view text, const std::string& file) {
  const json object = parse_object(text, file);
  HfReader reader(object, file);
  // The public hybrid model's type is not fixed by transformers.
  if (layout != Layout::hf_siamese) reader.require("model_type", {std::string(hf_name(layout).model_type)});
  if (layout == Layout::hf_gpt2) {
    read_gpt2(reader);
  } else if (layout == Layout::hf) {
    read_ours(reader);
  } else {
    read_llama(reader);
    if (has_layers(layout)) {
      read_layers(reader);
    } else {
      read_rope(reader);
    }
    if (layout == Layout::archspace_olmo3) read_archspace(reader);
  }
  const int64_t window = layout == Layout::hf_qwen2 || layout == Layout::hf_mistral ? read_window(layout, reader) : 0;
  HfConfig read{reader.model(), config::Value::map(), window};
  // OLMo 3's default changed between versions of the package, and its files say it.
  const bool documented =
      layout != Layout::hf_gpt2 && layout != Layout::hf_siamese && layout != Layout::hf && !has_layers(layout);
  if (documented && read.model.find("rope_theta") == nullptr) {
    read.defaults["rope_theta"] = config::print(10000.0);
  }
  return read;
}

Layout layout_of_hf_config(std::string_view text, const std::string& file, Layout otherwise) {
  const json object = parse_object(text, file);
  for (const HfName& name : kHfNames) {
    const auto type = object.find("model_type");
    if (type != object.end() && *type == std::string(name.model_type)) return name.layout;
  }
  return otherwise;
}

Layout layout_of_hf_config(std::string_view text, const std::string& file) {
  const Layout found = layout_of_hf_config(text, file, Layout::siamese);
  if (found != Layout::siamese) return found;
  std::vector<std::string> known;
  for (const HfName& name : kHfNames) known.emplace_back(name.model_type);
  const json object = parse_object(text, file);
  throw DataError(file + ": model_type: expected one of " + join(known) + ", got " +
                  (object.contains("model_type") ? io::in_quotes(io::json_text(object["model_type"])) : "none") +
                  "; --from names the layout of a file that does not say it");
}

std::string hf_config_text(Layout layout, const models::ModelConfig& config, std::string_view torch_dtype) {
  if (layout == Layout::hf) {
    const auto of = [](std::string_view file, std::string_view name) {
      return std::string(file.substr(0, file.find('.'))) + "." + std::string(name);
    };
    const nlohmann::ordered_json text = {{"architectures", {std::string(hf_name(layout).architecture)}},
                                         {"model_type", std::string(hf_name(layout).model_type)},
                                         {"auto_map",
                                          {{"AutoConfig", of(kConfigurationFile, "SiameseConfig")},
                                           {"AutoModelForCausalLM", of(kModelingFile, hf_name(layout).architecture)}}},
                                         {"torch_dtype", std::string(torch_dtype)},
                                         {"bos_token_id", nullptr},
                                         {"eos_token_id", nullptr},
                                         {"model", ours_as_json(config)}};
    return io::json_text(text, 2) + "\n";
  }
  nlohmann::ordered_json text = {{"architectures", {std::string(hf_name(layout).architecture)}},
                                 {"model_type", std::string(hf_name(layout).model_type)},
                                 {"torch_dtype", std::string(torch_dtype)},
                                 {"vocab_size", config.vocab},
                                 {"tie_word_embeddings", config.tied},
                                 {"bos_token_id", nullptr},  // the defaults of the package may lie past the vocabulary
                                 {"eos_token_id", nullptr}};
  if (layout == Layout::hf_gpt2) {
    text.update({{"n_embd", config.width},
                 {"n_layer", config.blocks},
                 {"n_head", config.heads},
                 {"n_positions", config.context},
                 {"n_inner", config.ffn_width},
                 {"layer_norm_epsilon", config.norm_eps},
                 {"activation_function", "gelu_new"}});
    return io::json_text(text, 2) + "\n";
  }
  text.update({{"hidden_size", config.width},
               {"num_hidden_layers", config.blocks},
               {"num_attention_heads", config.heads},
               {"num_key_value_heads", config.kv_heads},
               {"head_dim", config.width / config.heads},
               {"intermediate_size", config.ffn_width},
               {"max_position_embeddings", config.context},
               {"rms_norm_eps", config.norm_eps},
               {"rope_theta", config.rope_theta},
               {"rope_parameters", has_layers(layout) ? layered_rope(config) : hf_rope_parameters(config)},
               {"hidden_act", "silu"}});
  if (const auto scaling = hf_rope_scaling(config); !scaling.is_null()) text["rope_scaling"] = scaling;
  if (layout == Layout::hf_qwen2) {
    text.update({{"use_sliding_window", false}, {"sliding_window", nullptr}});
  } else if (layout == Layout::hf_mistral) {
    text["sliding_window"] = window_or_null(config.window_of(0));
  } else {
    text.update({{"attention_bias", false}, {"mlp_bias", false}});
  }
  if (has_layers(layout)) add_layers(config, text);
  if (layout == Layout::archspace_olmo3) add_archspace(config, text);
  return io::json_text(text, 2) + "\n";
}

}  // namespace siamese::formats

#include "siamese/formats/hf_config.h"

#include "tests/formats/support.h"
#include <nlohmann/json.hpp>

namespace siamese::formats {
namespace {

const std::string kLlama = R"({"model_type": "llama", "hidden_size": 12, "num_hidden_layers": 2,
  "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 7, "vocab_size": 11, "rms_norm_eps": 1e-5,
  "rope_theta": 500000.0, "max_position_embeddings": 99, "tie_word_embeddings": false, "head_dim": 2,
  "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "rope_scaling": null, "use_cache": true})";

// kLlama with one key changed.
std::string llama_with(const std::string& key, const std::string& value) {
  auto json = nlohmann::json::parse(kLlama);
  json[key] = nlohmann::json::parse(value);
  return json.dump();
}

std::map<std::string, std::string> keys_of(Layout layout, const std::string& text) {
  std::map<std::string, std::string> keys;
  for (const auto& [key, value] : read_hf_config(layout, text, "config.json").model.entries) keys[key] = value.text;
  return keys;
}

TEST(HfConfig, SaysTheModelSection) {
  const std::map<std::string, std::string> expected = {
      {"width", "12"}, {"blocks", "2"},       {"heads", "6"},          {"kv_heads", "2"}, {"ffn_width", "7"},
      {"vocab", "11"}, {"norm_eps", "1e-05"}, {"rope_theta", "5e+05"}, {"context", "99"}, {"tied", "false"}};
  EXPECT_EQ(keys_of(Layout::hf_llama, kLlama), expected);
  const std::string gpt2 = R"({"model_type": "gpt2", "n_embd": 12, "n_layer": 2, "n_head": 6, "n_positions": 8,
    "n_inner": null, "vocab_size": 11, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"})";
  const std::map<std::string, std::string> of_gpt2 = {{"width", "12"},  {"blocks", "2"}, {"heads", "6"},
                                                      {"context", "8"}, {"vocab", "11"}, {"norm_eps", "1e-05"}};
  EXPECT_EQ(keys_of(Layout::hf_gpt2, gpt2), of_gpt2);
  EXPECT_EQ(layout_of_hf_config(gpt2, "config.json", Layout::hf_llama), Layout::hf_gpt2);
  EXPECT_EQ(layout_of_hf_config("{}", "config.json", Layout::hf_olmo2), Layout::hf_olmo2);
}

TEST(HfConfig, NewFilesHaveRopeParameters) {
  auto json = nlohmann::json::parse(kLlama);
  json.erase("rope_theta");
  EXPECT_EQ(read_hf_config(Layout::hf_llama, json.dump(), "c").defaults.find("rope_theta")->text, "10000");
  EXPECT_EQ(read_hf_config(Layout::hf_siamese, json.dump(), "c").defaults.find("rope_theta"), nullptr);
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 70000.0}};
  EXPECT_EQ(keys_of(Layout::hf_llama, json.dump()).at("rope_theta"), "70000");
  EXPECT_TRUE(read_hf_config(Layout::hf_llama, json.dump(), "c").defaults.entries.empty());
}

TEST(HfConfig, RefusesByKeyWhatWouldChangeTheFunction) {
  const std::pair<const char*, const char*> cases[] = {{"hidden_act", "\"gelu\""},
                                                       {"attention_bias", "true"},
                                                       {"mlp_bias", "true"},
                                                       {"head_dim", "4"},
                                                       {"model_type", "\"mistral\""},
                                                       {"rope_scaling", R"({"rope_type": "llama3", "factor": 8.0})"},
                                                       {"rope_scaling", R"({"type": "linear", "factor": 2.0})"},
                                                       {"rope_scaling", "[1]"},
                                                       {"rope_parameters", R"({"rope_type": "yarn"})"},
                                                       {"rope_parameters", R"({"partial_rotary_factor": 0.5})"},
                                                       {"partial_rotary_factor", "0.5"},
                                                       {"hidden_size", "\"12\""},
                                                       {"hidden_size", "0"},
                                                       {"hidden_size", "-3"},
                                                       {"num_attention_heads", "2.5"},
                                                       {"rms_norm_eps", "0"},
                                                       {"rope_theta", "\"x\""},
                                                       {"tie_word_embeddings", "1"}};
  for (const auto& [key, value] : cases) {
    expect_refused<DataError>(
        [&, k = key, v = value] { read_hf_config(Layout::hf_llama, llama_with(k, v), "dir/config.json"); },
        {std::string("dir/config.json: ") + key + ": expected"});
  }
  EXPECT_NO_THROW(read_hf_config(Layout::hf_llama, llama_with("rope_scaling", R"({"rope_type": "default"})"), "c"));
  for (const char* const text : {R"({"activation_function": "relu"})", R"({"scale_attn_weights": false})",
                                 R"({"scale_attn_by_inverse_layer_idx": true})", R"({"add_cross_attention": true})"}) {
    expect_refused<DataError>([&] { read_hf_config(Layout::hf_gpt2, text, "c"); }, {"c: ", ": expected"});
  }
  for (const std::string& text :
       {std::string("[]"), std::string("{"), std::string(), "{\"a\": " + std::string(50, '[')}) {
    expect_refused<DataError>([&] { read_hf_config(Layout::hf_gpt2, text, "c"); }, {"c: "});
  }
}

TEST(HfConfig, WhatIsWrittenReadsBack) {
  for (const Sample& sample : all_samples()) {
    if (!is_hugging_face(sample.layout)) continue;
    const std::string text = hf_config_text(sample.layout, sample.config, "bfloat16");
    EXPECT_EQ(layout_of_hf_config(text, "c", Layout::hf_gpt2), sample.layout);
    const auto printed = config::print(sample.config);
    for (const auto& [key, value] : keys_of(sample.layout, text)) {
      EXPECT_EQ(value, printed.find(key)->text) << sample.name << ": " << key;
    }
    EXPECT_EQ(nlohmann::json::parse(text)["torch_dtype"], "bfloat16");
  }
}

}  // namespace
}  // namespace siamese::formats

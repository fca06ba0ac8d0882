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

// What transformers means by the same keys (modeling_rope_utils.py).
TEST(HfConfig, ScaledRotaryFrequencies) {
  const auto scaling = [](const std::string& key, const std::string& value) {
    return keys_of(Layout::hf_llama, llama_with(key, value))["rope_scaling"];
  };
  EXPECT_EQ(scaling("rope_scaling", R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})"),
            "llama3(factor=8, context=8192)");
  EXPECT_EQ(scaling("rope_parameters", R"({"rope_type": "llama3", "rope_theta": 5e5, "factor": 32, "low_freq_factor": 2,
    "high_freq_factor": 5, "original_max_position_embeddings": 40})"),
            "llama3(factor=32, context=40, low=2, high=5)");
  // Without its own: the first context is max_position_embeddings; without a factor: their ratio.
  EXPECT_EQ(scaling("rope_scaling", R"({"type": "yarn", "factor": 4.0, "beta_fast": 16})"),
            "yarn(factor=4, context=99, beta_fast=16)");
  EXPECT_EQ(scaling("rope_scaling", R"({"type": "yarn", "original_max_position_embeddings": 33, "truncate": false})"),
            "yarn(factor=3, context=33, truncate=false)");
  EXPECT_EQ(scaling("rope_scaling", R"({"type": "yarn", "factor": 2, "attention_factor": 1.25})"),
            "yarn(factor=2, context=99, attention_factor=1.25)");
  // (0.1 * 2 ln f + 1) / (0.1 ln f + 1) with f = e: 1.2 / 1.1 = 1.0909...
  EXPECT_EQ(scaling("rope_scaling", R"({"type": "yarn", "factor": 2.718281828459045, "mscale": 2,
    "mscale_all_dim": 1})"),
            "yarn(factor=2.718281828459045, context=99, attention_factor=1.0909090909090908)");
  auto outside = nlohmann::json::parse(llama_with("rope_scaling", R"({"type": "yarn", "factor": 2,
    "original_max_position_embeddings": 50})"));
  outside["original_max_position_embeddings"] = 20;
  EXPECT_EQ(keys_of(Layout::hf_llama, outside.dump())["rope_scaling"], "yarn(factor=2, context=20)");
  EXPECT_EQ(scaling("rope_scaling", R"({"rope_type": "default"})"), "");
}

// Attention to a window is attention to all in a context that is no longer; Qwen 2 has it in some blocks only.
TEST(HfConfig, WindowsAreKnownOrLimitTheContext) {
  auto json = nlohmann::json::parse(llama_with("model_type", "\"mistral\""));
  const auto read = [&](Layout layout) { return read_hf_config(layout, json.dump(), "c"); };
  EXPECT_EQ(read(Layout::hf_mistral).window, 0);
  json["sliding_window"] = 32;
  EXPECT_EQ(read(Layout::hf_mistral).window, 0);
  EXPECT_EQ(read(Layout::hf_mistral).model.find("window")->text, "32");
  EXPECT_EQ(read(Layout::hf_mistral).model.find("context")->text, "99");
  json["sliding_window"] = 99;
  EXPECT_EQ(read(Layout::hf_mistral).window, 0);
  EXPECT_EQ(read(Layout::hf_mistral).model.find("context")->text, "99");
  json["sliding_window"] = "wide";
  expect_refused<DataError>([&] { read(Layout::hf_mistral); }, {"c: sliding_window: expected"});
  json["model_type"] = "qwen2";
  EXPECT_EQ(read(Layout::hf_qwen2).window, 0);  // not in use
  json["sliding_window"] = 32;
  json["use_sliding_window"] = true;
  EXPECT_EQ(read(Layout::hf_qwen2).window, 32);
  EXPECT_EQ(read(Layout::hf_qwen2).model.find("context")->text, "32");
}

TEST(HfConfig, LayersOfOlmo3) {
  auto json = nlohmann::json::parse(llama_with("model_type", "\"olmo3\""));
  json["num_hidden_layers"] = 6;
  json["sliding_window"] = 32;
  const auto keys = [&] { return keys_of(Layout::hf_olmo3, json.dump()); };
  EXPECT_EQ(keys()["window"], "32");
  EXPECT_EQ(keys()["window_pattern"], "SSSF");  // what the package means without a list
  EXPECT_FALSE(keys().contains("rope_scaling_layers"));
  const std::string s = "sliding_attention", f = "full_attention";
  const std::pair<std::vector<std::string>, const char*> lists[] = {{{s, s, s, f, s, s}, "SSSF"},
                                                                    {{s, f, s, f, s, f}, "SF"},
                                                                    {{s, s, f, f, f, f}, "SSFFFF"},
                                                                    {{f, s, f, s, f, s}, "FS"}};
  for (const auto& [types, pattern] : lists) {
    json["layer_types"] = types;
    EXPECT_EQ(keys()["window_pattern"], pattern);
  }
  json["layer_types"] = std::vector<std::string>(6, s);
  EXPECT_FALSE(keys().contains("window_pattern"));
  EXPECT_EQ(keys()["window"], "32");
  json["layer_types"] = std::vector<std::string>(6, f);
  EXPECT_FALSE(keys().contains("window"));
  const auto refused = [&](const char* words) { expect_refused<DataError>([&] { keys(); }, {"config.json: ", words}); };
  json["layer_types"] = std::vector<std::string>(5, s);
  refused("layer_types: expected a list");
  json["layer_types"] = {s, s, s, s, s, "chunked_attention"};
  refused("layer_types: expected a list");
  json["layer_types"] = nullptr;
  json["sliding_window"] = nullptr;
  refused("sliding_window: expected");
}

TEST(HfConfig, RotaryFrequenciesOfOlmo3AreThoseOfFullLayers) {
  auto json = nlohmann::json::parse(llama_with("model_type", "\"olmo3\""));
  json["sliding_window"] = 32;
  const auto keys = [&] { return keys_of(Layout::hf_olmo3, json.dump()); };
  const nlohmann::json yarn = {{"rope_type", "yarn"}, {"factor", 8}, {"original_max_position_embeddings", 33}};
  json["rope_scaling"] = yarn;
  EXPECT_EQ(keys()["rope_scaling"], "yarn(factor=8, context=33)");
  EXPECT_EQ(keys()["rope_scaling_layers"], "full");
  json["rope_scaling"] = nullptr;
  json.erase("rope_theta");
  EXPECT_TRUE(read_hf_config(Layout::hf_olmo3, json.dump(), "c").defaults.entries.empty());
  auto full = yarn;
  full["rope_theta"] = 7e4;
  json["rope_parameters"] = {{"full_attention", full},
                             {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 7e4}}}};
  EXPECT_EQ(keys()["rope_scaling"], "yarn(factor=8, context=33)");
  EXPECT_EQ(keys()["rope_scaling_layers"], "full");
  EXPECT_EQ(keys()["rope_theta"], "70000");
  const auto refused = [&](const char* words) {
    expect_refused<DataError>([&] { keys(); }, {"config.json: rope_parameters.", words});
  };
  auto& sliding = json["rope_parameters"]["sliding_attention"];
  sliding["rope_theta"] = 1e4;
  refused("sliding_attention.rope_theta: expected that of full layers");
  sliding = full;
  refused("sliding_attention.rope_type: expected default");
  sliding = {{"rope_type", "default"}};
  json["rope_parameters"]["full_attention"]["truncate"] = false;
  refused("full_attention.truncate: expected true");
}

TEST(HfConfig, DepthAttentionOfArchspace) {
  auto json = nlohmann::json::parse(llama_with("model_type", "\"olmo3_siamese_depth\""));
  json.update({{"sliding_window", 32},
               {"use_depth_attention", true},
               {"depth_attention_stride", 8},
               {"depth_attention_recent_window", 0},
               {"use_siamese_norm", true},
               {"siamese_norm_variant", "hybrid_pre"},
               {"qk_norm", true},
               {"qk_norm_mode", "full_projection"}});
  const auto keys = [&] { return keys_of(Layout::archspace_olmo3, json.dump()); };
  EXPECT_EQ(layout_of_hf_config(json.dump(), "c"), Layout::archspace_olmo3);
  EXPECT_EQ(keys()["depth_attention_stride"], "8");
  EXPECT_FALSE(keys().contains("depth_attention_recent"));
  json["depth_attention_recent_window"] = 3;
  EXPECT_EQ(keys()["depth_attention_recent"], "3");
  const std::pair<const char*, nlohmann::json> wrong[] = {
      {"siamese_norm_variant", "post"}, {"use_siamese_norm", false},         {"qk_norm", false},
      {"qk_norm_mode", "per_head"},     {"depth_attention_stride", nullptr}, {"depth_attention_recent_window", -1}};
  for (const auto& [key, value] : wrong) {
    const auto before = json[key];
    json[key] = value;
    expect_refused<DataError>([&] { keys(); }, {std::string("config.json: ") + key + ": expected"});
    json[key] = before;
  }
  json["use_depth_attention"] = false;
  EXPECT_FALSE(keys().contains("depth_attention_stride"));
}

TEST(HfConfig, TheModelTypeTellsTheLayout) {
  EXPECT_EQ(layout_of_hf_config(R"({"model_type": "qwen2"})", "c"), Layout::hf_qwen2);
  EXPECT_EQ(layout_of_hf_config(R"({"model_type": "mistral"})", "c"), Layout::hf_mistral);
  expect_refused<DataError>([] { layout_of_hf_config(R"({"model_type": "gemma"})", "c"); },
                            {"c: model_type: expected one of llama", "gemma"});
  expect_refused<DataError>([] { layout_of_hf_config("{}", "c"); }, {"c: model_type: expected one of", "none"});
}

TEST(HfConfig, RefusesByKeyWhatWouldChangeTheFunction) {
  const std::pair<const char*, const char*> cases[] = {{"hidden_act", "\"gelu\""},
                                                       {"attention_bias", "true"},
                                                       {"mlp_bias", "true"},
                                                       {"head_dim", "4"},
                                                       {"model_type", "\"mistral\""},
                                                       {"rope_scaling", R"({"rope_type": "longrope", "factor": 8.0})"},
                                                       {"rope_scaling", R"({"rope_type": "llama3", "factor": 0.5})"},
                                                       {"rope_scaling", R"({"type": "yarn", "factor": "8"})"},
                                                       {"rope_scaling", R"({"type": "linear", "factor": 2.0})"},
                                                       {"rope_scaling", "[1]"},
                                                       {"rope_parameters", R"({"rope_type": "dynamic"})"},
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
        {std::string("dir/config.json: ") + key, "expected"});
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

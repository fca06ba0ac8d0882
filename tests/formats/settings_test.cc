// What an import knows of a model, and what an export insists on.
#include <algorithm>
#include <set>

#include "tests/formats/support.h"
#include "tests/support/errors.h"

namespace siamese::formats {
namespace {

class Settings : public FormatsTest {};

TEST_F(Settings, TensorsTellTheSizes) {
  for (const Sample& sample : all_samples()) {
    const auto file = stored(sample.theirs);
    EXPECT_EQ(text_of(inferred(file, sample.layout, sample.said)), text_of(sample.config)) << sample.name;
    std::vector<std::string> assumed;
    for (const auto& one : model_settings(StoredTensors(file, sample.layout), tree_of(sample.said)).assumed) {
      assumed.push_back(one.key);
    }
    EXPECT_EQ(assumed, sample.assumed) << sample.name;
  }
}

TEST_F(Settings, GradientsTellTheSame) {
  for (const Sample& sample : all_samples()) {
    if (sample.config.family == models::Family::dit) continue;  // the image is told by the positions, a buffer
    Tensors gradients;
    for (const auto& tensor : sample.theirs) gradients.push_back({"grad/" + tensor.name, tensor.value});
    EXPECT_EQ(text_of(inferred(stored(gradients), sample.layout, sample.said)), text_of(sample.config)) << sample.name;
  }
}

TEST_F(Settings, OurOwnTensorsTellTheSizesToo) {
  for (const Sample& sample : all_samples()) {
    std::map<std::string, std::string> said = sample.said;
    said["residual"] = sample.config.residual;
    const auto keys = config::print(sample.config);
    for (const char* const key : {"norm_eps", "norm", "ffn", "heads", "patch", "label_dropout", "rope_theta"}) {
      said[key] = keys.find(key)->text;
    }
    EXPECT_EQ(text_of(inferred(stored(sample.ours), Layout::siamese, said)), text_of(sample.config)) << sample.name;
  }
}

TEST_F(Settings, AMixtureOfExpertsTellsItsSizes) {
  models::ModelConfig config;
  config.family = models::Family::moe;
  config.residual = "pre";
  config.width = 12;
  config.blocks = 2;
  config.heads = 6;
  config.kv_heads = 3;
  config.ffn_width = 5;
  config.experts = 3;
  config.shared_width = 4;
  config.vocab = 7;
  models::resolve(config, {});
  Tensors tensors;
  for (const auto& tensor : models::tensor_list(config))
    tensors.push_back({tensor.name, at::zeros(tensor.value.sizes())});
  const std::map<std::string, std::string> said = {
      {"residual", "pre"},        {"heads", "6"},           {"norm", "rms"},        {"norm_eps", "1e-05"},
      {"experts_per_token", "2"}, {"renormalise", "false"}, {"rope_theta", "10000"}};
  EXPECT_EQ(text_of(inferred(stored(tensors), Layout::siamese, said)), text_of(config));
  expect_refused<UsageError>([&] { inferred(stored(tensors), Layout::siamese, {}); },
                             {"model.residual, model.heads, model.norm, model.norm_eps, model.rope_theta, "
                              "model.experts_per_token, model.renormalise: the tensors do not tell them"});
}

TEST_F(Settings, NamesEachKeyThatNobodyTold) {
  // Documented; plain unless somebody says it.
  const std::set<std::string> needless = {"label_dropout",         "rope_scaling",        "window",
                                          "window_pattern",        "rope_scaling_layers", "depth_attention_stride",
                                          "depth_attention_recent"};
  for (const Sample& sample : all_samples()) {
    for (const auto& [key, value] : sample.said) {
      if (needless.contains(key)) continue;
      auto said = sample.said;
      said.erase(key);
      expect_refused<UsageError>(
          [&] { inferred(stored(sample.theirs), sample.layout, said); },
          {"model." + key + ": the tensors do not tell it; give model." + key + "=..., or --config"});
    }
  }
  const Sample dit = sample_named("official-dit");
  expect_refused<UsageError>([&] { inferred(stored(without(dit.theirs, "pos_embed")), dit.layout, dit.said); },
                             {"model.image: the tensors do not tell it"});
  const auto told = inferred(stored(without(dit.theirs, "pos_embed")), dit.layout, {{"heads", "3"}, {"image", "6"}});
  EXPECT_EQ(told.image, 6);
}

TEST_F(Settings, WhatIsSaidWinsOverTensorsAndTensorsOverTheLayout) {
  const Sample sample = sample_named("hf-llama");
  auto said = sample.said;
  said["norm_eps"] = "0.001";
  said["vocab"] = "99";
  said["residual"] = "pre";
  const auto settings = model_settings(StoredTensors(stored(sample.theirs), sample.layout), tree_of(said));
  EXPECT_EQ(settings.model.find("norm_eps")->text, "0.001");
  EXPECT_EQ(settings.model.find("vocab")->text, "99");
  EXPECT_EQ(settings.assumed.size(), 1U);  // the context
  // Without the head's tensor the model is tied, whatever the layout's authors do.
  EXPECT_TRUE(inferred(stored(without(sample.theirs, "lm_head.weight")), sample.layout, sample.said).tied);
}

TEST_F(Settings, TransformersDefaultsAreAssumptions) {
  const Sample sample = sample_named("hf-llama");
  const auto file = stored(sample.theirs);
  const auto settings = model_settings(StoredTensors(file, sample.layout), tree_of({{"heads", "6"}}),
                                       tree_of({{"rope_theta", "10000"}, {"heads", "3"}}));
  EXPECT_EQ(settings.model.find("rope_theta")->text, "10000");
  EXPECT_EQ(settings.model.find("heads")->text, "6");
  EXPECT_EQ(std::count_if(settings.assumed.begin(), settings.assumed.end(),
                          [](const Assumption& one) { return one.key == "model.rope_theta"; }),
            1);
}

TEST_F(Settings, LabelsOfADitWithoutARowForNone) {
  const Sample sample = sample_named("official-dit");  // a table of 6 rows
  const auto file = stored(sample.theirs);
  EXPECT_EQ(inferred(file, sample.layout, {{"heads", "3"}}).classes, 5);
  EXPECT_EQ(inferred(file, sample.layout, {{"heads", "3"}, {"label_dropout", "0"}}).classes, 6);
  const auto said = inferred(file, sample.layout, {{"heads", "3"}, {"classes", "6"}});
  EXPECT_EQ(said.classes, 6);
  EXPECT_EQ(said.label_dropout, 0);
  EXPECT_EQ(inferred(file, sample.layout, {{"heads", "3"}, {"label_dropout", "0.2"}}).classes, 5);
}

TEST_F(Settings, AFileOfAnotherLayoutIsRefused) {
  const Sample gpt2 = sample_named("hf-gpt2");
  expect_refused<DataError>(
      [&] { inferred(stored(gpt2.theirs), Layout::hf_llama, {}); },
      {"expected the names of layout hf-llama, which has model.embed_tokens.weight", "transformer."});
  expect_refused<DataError>([&] { inferred(stored({}), Layout::hf_llama, {}); }, {"got no tensor"});
}

TEST_F(Settings, HostileShapesAreRefusedAndNeverWrapRound) {
  const int64_t huge = int64_t{1} << 60;
  const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {0, huge}, {0, 3, 1 << 20, 1 << 20}, {0, huge, 1}};
  size_t next = 0;
  for (const Sample& sample : all_samples()) {
    for (const auto& victim : sample.theirs) {
      if (victim.name.find(".1.") != std::string::npos) continue;
      const Tensors tensors = without(sample.theirs, victim.name);
      try {
        const auto file = stored(with(tensors, victim.name, at::empty(shapes[++next % shapes.size()])));
        const auto config = inferred(file, sample.layout, sample.said);
        converted(file, sample.layout, Layout::siamese, config);
        ADD_FAILURE() << sample.name << ": " << victim.name << " accepted";
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Exit::usage || error.code() == Exit::bad_data) << error.what();
      }
    }
  }
}

TEST_F(Settings, ExportInsistsOnWhatTheLayoutMeans) {
  for (const Sample& sample : all_samples()) {
    EXPECT_NO_THROW(check_export(sample.layout, sample.config)) << sample.name;
    EXPECT_NO_THROW(check_export(Layout::siamese, sample.config));
    for (const Setting& setting : table_of(sample.layout).fixed) {
      models::ModelConfig other = sample.config;
      config::Value values = config::print(other);
      const std::map<std::string, std::string> wrong = {
          {"family", other.family == models::Family::lm ? "moe" : "lm"},
          {"residual", "siamese(x=hybrid, depth_scale=none)"},
          {"ffn", other.ffn == nn::FeedForwardKind::swiglu ? "gelu" : "swiglu"},
          {"positions", other.positions == models::Positions::rope ? "learned" : "rope"},
          {"bias", other.bias ? "false" : "true"},
          {"norm", other.norm == nn::NormKind::rms ? "layer" : "rms"},
          {"rope_scaling", "yarn(factor=2, context=64)"},
          {"qkv_bias", other.qkv_bias ? "false" : "true"},
          {"attention_norm", "qk"}};
      const std::string key(setting.key);
      values[key] = config::Value::scalar(wrong.at(key));
      config::read(values, "model", other);
      expect_refused<UsageError>([&] { check_export(sample.layout, other); },
                                 {"model." + key + ": expected " + std::string(setting.value),
                                  "for layout " + std::string(enum_text(sample.layout)), "got " + wrong.at(key)});
    }
  }
  models::ModelConfig olmo2 = sample_named("hf-olmo2").config;
  olmo2.attention_norm = models::AttentionNormChoice::qk_full;  // what the scheme asks for, said aloud
  EXPECT_NO_THROW(check_export(Layout::hf_olmo2, olmo2));
  for (const char* const name : {"hf-gpt2", "official-deit", "official-dit"}) {
    Sample sample = sample_named(name);
    sample.config.kv_heads = 1;
    expect_refused<UsageError>([&] { check_export(sample.layout, sample.config); },
                               {"model.kv_heads: expected", "got 1"});
  }
}

// What blocks do differently, or hand to each other, stands in the config.json of few layouts.
TEST_F(Settings, ExportRefusesWhatALayoutDoesNotHoldOfBlocks) {
  const auto refused = [](const char* name, const std::string& words, const auto& change) {
    Sample sample = sample_named(name);
    sample.config.context = 64;
    change(sample.config);
    models::resolve(sample.config, {});
    EXPECT_NO_THROW(check_export(Layout::siamese, sample.config)) << name;
    expect_refused<UsageError>([&] { check_export(sample.layout, sample.config); },
                               {words, "for layout " + std::string(enum_text(sample.layout))});
  };
  using Config = models::ModelConfig;
  const auto window = [](const char* pattern) {
    return [pattern](Config& config) {
      config.window = 9;
      config.window_pattern = pattern;
    };
  };
  refused("hf-llama", "model.window: expected 0, or at least model.context (64),", window("SF"));
  refused("hf-mistral", "model.window_pattern: expected S", window("SF"));
  Sample mistral = sample_named("hf-mistral");
  window("S")(mistral.config);
  EXPECT_NO_THROW(check_export(Layout::hf_mistral, mistral.config));
  const auto scaled = [](int64_t size, models::RopeScalingLayers layers) {
    return [size, layers](Config& config) {
      config.window = size;
      config.window_pattern = "SF";
      config.rope_scaling = "yarn(factor=4, context=64)";
      config.rope_scaling_layers = layers;
    };
  };
  using models::RopeScalingLayers;
  // The window is as long as the context, so that only the frequencies differ.
  refused("hf-llama", "model.rope_scaling_layers: expected all", scaled(64, RopeScalingLayers::full));
  refused("hf-olmo3", "model.rope_scaling_layers: expected full", scaled(9, RopeScalingLayers::all));
  refused("archspace-olmo3", "model.rope_scaling: expected truncate=true",
          [](Config& config) { config.rope_scaling = "yarn(factor=4, context=64, truncate=false)"; });
  refused("hf-olmo3", "model.depth_attention_stride: expected 0",
          [](Config& config) { config.depth_attention_stride = 2; });
  refused("hf", "model.depth_attention_stride: expected 0", [](Config& config) { config.depth_attention_stride = 2; });
  for (const char* const name : {"hf-llama", "hf", "official-deit", "official-lm"}) {
    refused(name, "model.value_residual: expected none",
            [](Config& config) { config.value_residual = nn::ValueResidual::half; });
  }
}

TEST_F(Settings, ALearnedValueResidualIsToldByItsTensors) {
  models::ModelConfig config = sample_named("hf-llama").config;
  config.value_residual = nn::ValueResidual::learned;
  Tensors tensors;
  for (const auto& tensor : models::tensor_list(config)) {
    tensors.push_back({tensor.name, at::zeros(tensor.value.sizes())});
  }
  const std::map<std::string, std::string> said = {
      {"residual", "pre"}, {"heads", "6"}, {"norm", "rms"}, {"norm_eps", "1e-06"}, {"rope_theta", "5000"}};
  EXPECT_EQ(text_of(inferred(stored(tensors), Layout::siamese, said)), text_of(config));
}

TEST_F(Settings, MetadataMakesAFileStandAlone) {
  for (const Sample& sample : all_samples()) {
    const auto file = converted(stored(sample.theirs), sample.layout, Layout::siamese, sample.config);
    EXPECT_EQ(file.metadata().at("format"), "siamese");
    EXPECT_EQ(file.metadata().at("format_version"), "1");
    EXPECT_EQ(file.metadata().at("residual"), sample.config.residual);
    models::ModelConfig config;
    config::read(said_by_metadata(file), "model", config);
    models::resolve(config, {});
    EXPECT_EQ(text_of(config), text_of(sample.config)) << sample.name;
  }
  const Sample sample = sample_named("hf-llama");
  EXPECT_EQ(said_by_metadata(stored(sample.ours, {{"residual", "pre"}})).find("residual")->text, "pre");
  EXPECT_TRUE(said_by_metadata(stored(sample.ours)).entries.empty());
  expect_refused<DataError>(
      [&] {
        said_by_metadata(stored(sample.ours, {{"model", "[1, 2]"}}));
      },
      {"metadata model", "expected a map"});
  expect_refused<DataError>([&] { said_by_metadata(stored(sample.ours, {{"model", "a: b: c"}})); }, {"metadata model"});
}

TEST_F(Settings, ElementWiseNormsAreOursAlone) {
  for (const nn::NormKind kind : {nn::NormKind::dyt, nn::NormKind::derf}) {
    const std::string name(enum_text(kind));
    for (const Sample& sample : all_samples()) {
      models::ModelConfig config = sample.config;
      config.norm = kind;
      EXPECT_NO_THROW(check_export(Layout::siamese, config));
      testing::expect_error<UsageError>(
          [&] { check_export(sample.layout, config); },
          {"model.norm", "layout " + std::string(enum_text(sample.layout)), "got " + name});
    }
    models::ModelConfig config;
    config.residual = "pre";
    config.vocab = 19;
    config.norm = kind;
    models::resolve(config, {});
    testing::expect_error<UsageError>([&] { check_export(Layout::hf, config); }, {"model.norm", "layout hf", name});
    Tensors tensors;  // without a word beside them
    for (const auto& tensor : models::tensor_list(config)) {
      tensors.push_back({tensor.name, at::zeros(tensor.value.sizes())});
    }
    const models::ModelConfig told = inferred(
        stored(tensors), Layout::siamese,
        {{"residual", "pre"}, {"norm_eps", "1e-5"}, {"ffn", "swiglu"}, {"heads", "4"}, {"rope_theta", "10000"}});
    EXPECT_EQ(told.norm, kind);
  }
}

}  // namespace
}  // namespace siamese::formats

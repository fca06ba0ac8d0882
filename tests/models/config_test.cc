#include "siamese/models/config.h"

#include <gtest/gtest.h>

#include "siamese/base/check.h"

namespace siamese::models {
namespace {

std::string refusal(const ModelConfig& given, int64_t data_vocab = 16) {
  ModelConfig config = given;
  try {
    resolve(config, {.vocab = data_vocab});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelConfig, FillsInWhatIsDerived) {
  ModelConfig config;
  config.residual = "siamese(x=post)";
  resolve(config, {.vocab = 16});
  EXPECT_EQ(config.residual, "siamese");
  EXPECT_EQ(config.kv_heads, config.heads);
  EXPECT_EQ(config.ffn_width, 4 * config.width);
  EXPECT_EQ(config.vocab, 16);
}

TEST(ModelConfig, ImpossibleShapesNameTheKey) {
  EXPECT_NE(refusal({.width = 100, .heads = 3}).find("model.heads: expected a divisor of model.width (100), got 3"),
            std::string::npos);
  EXPECT_NE(refusal({.width = 0}).find("model.width"), std::string::npos);
  EXPECT_NE(refusal({.width = 64, .heads = 4, .kv_heads = 3}).find("model.kv_heads"), std::string::npos);
  EXPECT_NE(refusal({.width = 12, .heads = 4}).find("even head width"), std::string::npos);
  EXPECT_NE(refusal({.vocab = 8}).find("model.vocab"), std::string::npos);
  EXPECT_NE(refusal({.vocab = 0}, 0).find("model.vocab"), std::string::npos);
  EXPECT_NE(refusal({.context = -1}).find("model.context"), std::string::npos);
  EXPECT_NE(refusal({.residual = "prr"}).find("did you mean 'pre'"), std::string::npos);
  EXPECT_NE(refusal({.norm_eps = 0}).find("model.norm_eps"), std::string::npos);
}

// Also of a key that the family does not use: it stands in config.yaml, and another program would trip over it.
TEST(ModelConfig, ImpossibleValuesAreRefusedWhateverTheFamily) {
  const std::pair<const char*, void (*)(ModelConfig&)> changes[] = {
      {"kv_heads", [](ModelConfig& c) { c.kv_heads = -1; }},
      {"ffn_width", [](ModelConfig& c) { c.ffn_width = -1; }},
      {"vocab", [](ModelConfig& c) { c.vocab = -1; }},
      {"context", [](ModelConfig& c) { c.context = 0; }},
      {"experts", [](ModelConfig& c) { c.experts = 0; }},
      {"experts_per_token", [](ModelConfig& c) { c.experts_per_token = -2; }},
      {"shared_width", [](ModelConfig& c) { c.shared_width = -1; }},
      {"image", [](ModelConfig& c) { c.image = 0; }},
      {"patch", [](ModelConfig& c) { c.patch = -4; }},
      {"channels", [](ModelConfig& c) { c.channels = -1; }},
      {"classes", [](ModelConfig& c) { c.classes = -1; }},
      {"drop_path", [](ModelConfig& c) { c.drop_path = 1; }},
      {"label_dropout", [](ModelConfig& c) { c.label_dropout = -0.5; }},
      {"norm_eps", [](ModelConfig& c) { c.norm_eps = -1; }},
      {"rope_theta", [](ModelConfig& c) { c.rope_theta = 0; }}};
  for (const auto& [family, name] : EnumText<Family>::names) {
    for (const auto& [key, change] : changes) {
      ModelConfig config{.family = family, .channels = 3, .classes = 10};
      change(config);
      EXPECT_EQ(refusal(config).find("model." + std::string(key) + ": expected "), 0U)
          << name << ", " << key << ": " << refusal(config);
    }
  }
}

}  // namespace
}  // namespace siamese::models

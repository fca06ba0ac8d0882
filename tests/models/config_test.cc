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

}  // namespace
}  // namespace siamese::models

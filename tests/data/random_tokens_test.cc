#include "siamese/data/random_tokens.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace siamese::data {
namespace {

TEST(RandomTokens, AreAFunctionOfSeedAndPositionAndUseTheWholeVocabulary) {
  constexpr int64_t kVocab = 7;
  const auto draw = [](uint64_t seed, uint64_t position) {
    std::vector<int64_t> tokens(65);
    std::vector<float> weights(64);
    random_tokens(kVocab, seed)->sample(position, tokens, weights);
    EXPECT_EQ(weights, std::vector<float>(64, 1.0F));
    return tokens;
  };
  const std::vector<int64_t> tokens = draw(1, 5);
  EXPECT_EQ(std::set<int64_t>(tokens.begin(), tokens.end()), (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(draw(1, 5), tokens);
  EXPECT_NE(draw(1, 6), tokens);
  EXPECT_NE(draw(2, 5), tokens);
}

TEST(RandomTokens, AreADataSourceWithoutFilesWhoseSidesDiffer) {
  DataConfig config;
  config.source = Source::random;
  const auto draw = [&](Split split) {
    std::vector<int64_t> tokens(33);
    std::vector<float> weights(32);
    const auto dataset = open_dataset(config, split, 32, 100, 0);
    EXPECT_EQ(dataset->vocab(), 100);
    dataset->sample(0, tokens, weights);
    return tokens;
  };
  EXPECT_NE(draw(Split::train), draw(Split::test));
  EXPECT_EQ(draw(Split::train), draw(Split::train));
}

}  // namespace
}  // namespace siamese::data

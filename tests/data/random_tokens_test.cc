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

}  // namespace
}  // namespace siamese::data

#include "siamese/base/random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace siamese {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers of philox4x32-10 published with Random123 (Salmon et al. 2011).
// Counter words: index low, index high, stream low, stream high. Key words: seed low, seed high.
TEST(Random, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(random_words(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(random_words(~0ULL, ~0ULL, ~0ULL), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(random_words(0x299f31d0a4093822ULL, 0x0370734413198a2eULL, 0x85a308d3243f6a88ULL),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EveryBitOfSeedStreamAndIndexMatters) {
  std::set<uint64_t> seen = {random_u64(0, 0, 0)};
  for (int bit = 0; bit < 64; ++bit) {
    seen.insert(random_u64(1ULL << bit, 0, 0));
    seen.insert(random_u64(0, 1ULL << bit, 0));
    seen.insert(random_u64(0, 0, 1ULL << bit));
  }
  EXPECT_EQ(seen.size(), 1U + 3U * 64U);
}

TEST(Random, UniformIsInsideTheOpenIntervalWithTheRightMoments) {
  constexpr int kCount = 200000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random_uniform(7, 3, static_cast<uint64_t>(i));
    ASSERT_GT(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.003);
  EXPECT_NEAR(squares / kCount, 1.0 / 3.0, 0.003);
}

struct Moments {
  double mean = 0, variance = 0, fourth = 0, largest = 0;
};

Moments normal_moments(double cut) {
  constexpr int kCount = 200000;
  Moments moments;
  for (int i = 0; i < kCount; ++i) {
    const double value = random_normal(11, 5, static_cast<uint64_t>(i), cut);
    moments.mean += value / kCount;
    moments.variance += value * value / kCount;
    moments.fourth += value * value * value * value / kCount;
    moments.largest = std::max(moments.largest, std::abs(value));
  }
  return moments;
}

TEST(Random, NormalHasTheMomentsOfANormal) {
  const Moments moments = normal_moments(0);
  EXPECT_NEAR(moments.mean, 0, 0.01);
  EXPECT_NEAR(moments.variance, 1, 0.015);
  EXPECT_NEAR(moments.fourth, 3, 0.12);
  EXPECT_GT(moments.largest, 3.5);
}

TEST(Random, CutNormalStaysInsideAndHasTheMomentsOfACutNormal) {
  const double cut = 2;
  const Moments moments = normal_moments(cut);
  EXPECT_LE(moments.largest, cut);
  EXPECT_GT(moments.largest, cut - 0.01);
  EXPECT_NEAR(moments.mean, 0, 0.01);
  // Var = 1 - 2 c phi(c) / (2 Phi(c) - 1) = 0.77374 for c = 2.
  EXPECT_NEAR(moments.variance, 0.77374, 0.01);
}

TEST(Random, ACutChangesOnlyWhatItCutsOff) {
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const double whole = random_normal(1, 2, i);
    if (std::abs(whole) <= 3) {
      ASSERT_EQ(whole, random_normal(1, 2, i, 3));
      ++same;
    }
  }
  EXPECT_GT(same, 990);
}

TEST(Random, BelowCoversItsRangeEvenly) {
  EXPECT_EQ(random_below(1, 4, 5, 6), 0U);
  std::map<uint64_t, int> counts;
  for (uint64_t i = 0; i < 60000; ++i) ++counts[random_below(6, 9, 0, i)];
  ASSERT_EQ(counts.size(), 6U);
  EXPECT_EQ(counts.rbegin()->first, 5U);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10000, 400) << value;
  EXPECT_LT(random_below(~0ULL, 1, 2, 3), ~0ULL);
}

TEST(Random, HashesAreStable) {
  // Written down once: splits and stream names must mean the same in every build.
  EXPECT_EQ(mix_bits(0), 0U);
  EXPECT_EQ(mix_bits(0x9E3779B97F4A7C15ULL), 0xE220A8397B1DCDAFULL);  // first output of splitmix64 seeded with 0
  EXPECT_EQ(hash_text(""), mix_bits(0xCBF29CE484222325ULL));
  EXPECT_EQ(hash_text("a"), mix_bits(0xAF63DC4C8601EC8CULL));  // FNV-1a of "a"
  EXPECT_NE(hash_text("ab"), hash_text("ba"));
}

class PermutationTest : public testing::TestWithParam<uint64_t> {};

TEST_P(PermutationTest, IsABijection) {
  const uint64_t size = GetParam();
  for (const uint64_t seed : {0U, 1U, 12345U}) {
    const Permutation permutation(size, seed, 9);
    std::vector<bool> hit(size, false);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t image = permutation(i);
      ASSERT_LT(image, size);
      ASSERT_FALSE(hit[image]) << image << " twice";
      hit[image] = true;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PermutationTest, testing::Values(1, 2, 3, 4, 5, 10, 16, 17, 1000, 4096, 4097));

TEST(Permutation, DependsOnSeedAndStreamAndMovesThings) {
  constexpr uint64_t kSize = 1000;
  const Permutation base(kSize, 1, 0);
  for (const Permutation& other : {Permutation(kSize, 2, 0), Permutation(kSize, 1, 100)}) {
    int equal = 0;
    for (uint64_t i = 0; i < kSize; ++i) equal += base(i) == other(i);
    EXPECT_LT(equal, 10);
  }
  int fixed = 0;
  double displacement = 0;
  for (uint64_t i = 0; i < kSize; ++i) {
    fixed += base(i) == i;
    displacement += std::abs(static_cast<double>(base(i)) - static_cast<double>(i)) / kSize;
  }
  EXPECT_LT(fixed, 10);
  EXPECT_NEAR(displacement, kSize / 3.0, 25);  // of a random permutation: a third of its size
}

TEST(Permutation, AHugeOneCanBeEnteredAnywhere) {
  const uint64_t size = (1ULL << 40) + 7;
  const Permutation permutation(size, 3, 4);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 100; ++i) seen.insert(permutation(size - 1 - i));
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_LT(*seen.rbegin(), size);
}

}  // namespace
}  // namespace siamese

#include "siamese/data/mixture.h"

#include <cmath>
#include <map>
#include <set>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/identity.h"

namespace siamese::data {
namespace {

TEST(MixOrder, SharesAreExactAndEverySampleComesOnce) {
  const std::vector<double> weights = {3, 1, 0.5, 0.013};
  const double total = 4.513;
  const MixOrder order(weights, 7);
  std::vector<uint64_t> counts(weights.size());
  std::vector<std::set<uint64_t>> seen(weights.size());
  constexpr uint64_t kPositions = 256 * 400;
  for (uint64_t n = 0; n < kPositions; ++n) {
    const auto place = order(n);
    ++counts[place.source];
    EXPECT_TRUE(seen[place.source].insert(place.index).second);
    if ((n + 1) % 256 != 0) continue;
    for (size_t s = 0; s < weights.size(); ++s) {
      EXPECT_NEAR(static_cast<double>(counts[s]), static_cast<double>(n + 1) * weights[s] / total, 2) << n;
    }
  }
  for (size_t s = 0; s < weights.size(); ++s) {  // no sample is left out
    EXPECT_EQ(*seen[s].rbegin() + 1, seen[s].size());
  }
}

TEST(MixOrder, OneSourceAndNone) {
  const MixOrder only({0, 2, 0}, 1);
  std::set<uint64_t> seen;
  for (uint64_t n = 0; n < 512; ++n) {
    EXPECT_EQ(only(n).source, 1U);
    seen.insert(only(n).index);
  }
  EXPECT_EQ(seen.size(), 512U);
  EXPECT_EQ(*seen.rbegin(), 511U);
}

TEST(MixOrder, IsAFunctionOfSeedAndPosition) {
  const MixOrder a({1, 1}, 1), b({1, 1}, 1), other({1, 1}, 2);
  int differ = 0;
  for (uint64_t n = 0; n < 1000; ++n) {
    EXPECT_EQ(a(n).source, b(n).source);
    EXPECT_EQ(a(n).index, b(n).index);
    differ += a(n).source != other(n).source ? 1 : 0;
  }
  EXPECT_GT(differ, 300);
}

class MixtureTest : public ::testing::Test {
 protected:
  MixtureTest() {
    folder_.write("a.txt", std::string(4000, 'a'));
    folder_.write("b.txt", std::string(2000, 'b'));
    folder_.write("c.txt", std::string(500, 'c'));
    config_.source = Source::text;
    config_.mix = {"first=3", "second=1", "other=0"};
    config_.train = {"first=" + folder_ / "a.txt", "second=" + folder_ / "b.txt"};
    config_.val = {"other=" + folder_ / "c.txt"};
  }
  void refused(const std::string& words) const {
    const std::string said = error_of<UsageError>([&] { check(config_); });
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }

  TempFolder folder_;
  DataConfig config_;
  SampleShape shape_{.context = 16, .vocab = 256};
};

TEST_F(MixtureTest, SamplesComeFromTheirSources) {
  const auto batches = open_batches(config_, Split::train, shape_, 5);
  EXPECT_EQ(batches->samples(), 0);
  const Batch batch = batches->batch(256, 256);
  std::map<int64_t, int> rows;
  for (int64_t row = 0; row < 256; ++row) ++rows[batch.tokens[static_cast<size_t>(row * 17)]];
  EXPECT_EQ(rows['a'], 192);
  EXPECT_EQ(rows['b'], 64);
  const Batch again = open_batches(config_, Split::train, shape_, 5)->batch(300, 1);
  EXPECT_TRUE(std::equal(again.tokens.begin(), again.tokens.end(), batch.tokens.begin() + 44 * 17));
  EXPECT_NE(batches->describe().find("75 % first"), std::string::npos) << batches->describe();
}

TEST_F(MixtureTest, EachSourceHasAHeldOutSet) {
  const auto sets = open_held_out(config_, shape_);
  ASSERT_EQ(sets.size(), 3U);
  EXPECT_EQ(sets[0].name, "first");
  EXPECT_EQ(sets[0].weight, 3);
  EXPECT_EQ(sets[0].bytes_per_token, 1);
  EXPECT_EQ(sets[0].batches->samples(), (200 - 1) / 16);  // the last 5 %
  EXPECT_EQ(sets[2].weight, 0);
  EXPECT_EQ(sets[2].batches->samples(), (500 - 1) / 16);
  EXPECT_EQ(sets[2].batches->batch(0, 1).tokens[3], 'c');
  DataConfig plain = config_;
  plain.mix = {};
  plain.train = {folder_ / "a.txt"};
  plain.val = {};
  const auto one = open_held_out(plain, shape_);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].name, "");
}

TEST_F(MixtureTest, TheIdentityHasAllFiles) {
  const DataIdentity identity = identity_of(config_);
  ASSERT_EQ(identity.train.size(), 2U);
  ASSERT_EQ(identity.val.size(), 1U);
  EXPECT_EQ(identity.train[1].path, folder_ / "b.txt");
  DataConfig moved = config_;
  moved.base = folder_ / "";
  moved.train = {"first=a.txt", "second=b.txt"};
  moved.val = {"other=c.txt"};
  EXPECT_FALSE(difference(identity, identity_of(moved)));
}

TEST_F(MixtureTest, WrongKeysAreNamed) {
  config_.mix = {"first", "second=1"};
  refused("data.mix: expected NAME=WEIGHT with data.mix, got 'first'");
  config_.mix = {"first=-1", "second=1"};
  refused("data.mix: expected a weight >= 0 of 'first', got '-1'");
  config_.mix = {"first=1", "first=1"};
  refused("'first' stands there twice");
  config_.mix = {"first=0", "second=0", "other=0"};
  refused("data.mix: expected a weight above 0");
  config_.mix = {"a b=1"};
  refused("expected a name of letters");
  config_.mix = {"first=3", "second=1"};
  refused("data.val: 'other' is no source of data.mix");
  config_.mix = {"first=3", "second=0", "other=0"};
  refused("data.train: expected no files of 'second', whose weight in data.mix is 0");
  config_.mix = {"first=3", "second=1", "other=1"};
  refused("data.train: expected some files of 'other'");
  config_.mix = {"first=3", "second=1", "other=0", "more=0"};
  refused("data.val: expected files of 'more'");
  config_.mix = {"first=3", "second=1", "other=0"};
  config_.train = {folder_ / "a.txt"};
  refused("data.train: expected NAME=PATH with data.mix");
}

}  // namespace
}  // namespace siamese::data

#include "siamese/base/nearest.h"

#include <gtest/gtest.h>

namespace siamese {
namespace {

const std::vector<std::string> kKeys = {"width", "blocks", "heads", "kv_heads", "norm_eps"};

TEST(Nearest, FindsASlip) {
  EXPECT_EQ(nearest_match("widht", kKeys), "width");
  EXPECT_EQ(nearest_match("block", kKeys), "blocks");
  EXPECT_EQ(nearest_match("head", kKeys), "heads");
  EXPECT_EQ(nearest_match("kvheads", kKeys), "kv_heads");
  EXPECT_EQ(nearest_match("norm_epsilon", kKeys), "norm_eps");
  EXPECT_EQ(nearest_match("heads", kKeys), "heads");
}

TEST(Nearest, PrefersWhatTheTextBeginsWithToASlipOfManyLetters) {
  const std::vector<std::string> schemes = {"pre", "post", "peri", "deepnorm", "hybrid", "siamese"};
  EXPECT_EQ(nearest_match("prenorm", schemes), "pre");
  EXPECT_EQ(nearest_match("postnorm", schemes), "post");
  EXPECT_EQ(nearest_match("hybridnorm", schemes), "hybrid");
  EXPECT_EQ(nearest_match("siamesenorm", schemes), "siamese");
  EXPECT_EQ(nearest_match("deepnrm", schemes), "deepnorm");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest_match("temperature", kKeys), "");
  EXPECT_EQ(nearest_match("", kKeys), "");
  EXPECT_EQ(nearest_match("width", {}), "");
  EXPECT_EQ(did_you_mean("temperature", kKeys), "");
}

TEST(Nearest, TheFirstOfEquallyNearNamesWins) { EXPECT_EQ(nearest_match("bat", {"cat", "rat"}), "cat"); }

TEST(Nearest, PhrasesTheHint) { EXPECT_EQ(did_you_mean("widht", kKeys), " (did you mean 'width'?)"); }

}  // namespace
}  // namespace siamese

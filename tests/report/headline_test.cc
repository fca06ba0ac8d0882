// The sentence at the head of a page claims no more than the seeds allow.
#include "siamese/report/headline.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace siamese::report {
namespace {

class HeadlineTest : public ::testing::Test {
 protected:
  void run(const std::string& variant, double lr, const std::vector<double>& losses,
           RunState state = RunState::finished) {
    for (size_t seed = 0; seed < losses.size(); ++seed) {
      RunRecord& made = runs_.emplace_back();
      made.variant = variant;
      made.lr = lr;
      made.seed = static_cast<int64_t>(seed);
      made.state = state;
      made.evals = {{.step = 100, .loss = losses[seed]}};
    }
  }
  std::string said() const {
    const auto groups = group_results(runs_);
    return headline(compare_variants(runs_, groups).front(), groups);
  }

  std::vector<RunRecord> runs_;
};

TEST_F(HeadlineTest, LowerBeyondNoiseWithIntervalAndSeeds) {
  run("pre", 0.1, {2.00, 2.01, 2.02});
  run("pre", 0.2, {2.50, 2.51, 2.52});
  run("siamese", 0.1, {1.87, 1.88, 1.89});
  run("span", 0.1, {1.90, 1.88, 1.88});
  run("post", 0.1, {3.0, 3.01, 3.02});
  // Differences to pre are 0.13 at every seed, to post 1.13; to span they scatter around 0.
  EXPECT_EQ(said(),
            "siamese is 0.13 lower than pre at the best rate of each (95 % interval of the difference -0.13 to -0.13, "
            "3 seeds); within "
            "noise of span; lower than post.");
}

TEST_F(HeadlineTest, TheIntervalIsThatOfTheAdvantage) {
  run("pre", 0.1, {2.0, 2.4});
  run("siamese", 0.1, {1.9, 2.0});
  // Advantages 0.1 and 0.4: mean 0.25, error 0.15, t(1) = 12.706.
  EXPECT_EQ(said(),
            "siamese is 0.25 lower than pre, which is within noise (95 % interval of the difference -2.16 to +1.66, 2 "
            "seeds).");
}

TEST_F(HeadlineTest, AReferenceThatIsBestIsComparedWithTheNext) {
  run("pre", 0.1, {1.0, 1.001, 1.002});
  run("post", 0.1, {3.0, 3.001, 3.002});
  run("hybrid", 0.1, {2.0, 2.001, 2.002});
  EXPECT_EQ(
      said(),
      "pre is 1.00 lower than hybrid (95 % interval of the difference -1.00 to -1.00, 3 seeds); lower than post.");
}

TEST_F(HeadlineTest, ANameWithACommaIsOneName) {
  run("pre, attention_norm=qkv", 0.1, {2.0, 2.4});
  run("siamese", 0.1, {1.9, 2.0});
  EXPECT_EQ(said().find("siamese is 0.25 lower than 'pre, attention_norm=qkv', which"), 0u) << said();
}

TEST_F(HeadlineTest, LossesOnDifferentTargetsAreNotCompared) {
  run("pre", 0.1, {2.0, 2.4});
  run("siamese", 0.1, {1.9, 2.0});
  for (RunRecord& each : runs_) each.evals[0].baseline = 2.39839;
  EXPECT_EQ(said().find("siamese is 0.25 lower"), 0u) << said();
  runs_.back().evals[0].baseline = 2.26765;
  EXPECT_EQ(said(), "These runs were not all judged on the same held-out targets: their losses are not comparable.");
}

// A difference among runs of which none has learned anything is no result about the schemes.
TEST_F(HeadlineTest, SaysSoWhereEveryRunIsStuck) {
  run("pre", 0.1, {2.0, 2.4});
  run("siamese", 0.1, {1.9, 2.0});
  for (RunRecord& one : runs_) one.stuck = true;
  EXPECT_NE(said().find("2 seeds). All of these runs are stuck near the loss of the best constant prediction."),
            std::string::npos)
      << said();
  runs_.front().stuck = false;
  EXPECT_EQ(said().find("stuck"), std::string::npos) << said();
}

TEST_F(HeadlineTest, OneSeedAndNoCommonSeedSayNothingOfNoise) {
  run("pre", 0.1, {2.0});
  run("siamese", 0.1, {1.995});
  EXPECT_EQ(said(), "siamese is 0.0050 lower than pre (1 seed: what is noise is not known).");
  runs_.back().seed = 7;
  EXPECT_EQ(said(), "siamese has the lowest mean held-out loss, but no seed in common with pre.");
}

TEST_F(HeadlineTest, WhatHasNotFinishedIsSaidSo) {
  run("pre", 0.1, {2.0, 2.1}, RunState::running);
  run("siamese", 0.1, {1.0, 1.5}, RunState::running);
  EXPECT_TRUE(said().starts_with("So far, with no run finished: siamese is 0.80 lower")) << said();
}

TEST_F(HeadlineTest, OneVariantHasNone) {
  run("pre", 0.1, {2.0, 2.1});
  EXPECT_EQ(said(), "");
}

}  // namespace
}  // namespace siamese::report

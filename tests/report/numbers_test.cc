// Statistics, downsampling, aggregation, configuration differences, the Markdown table.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "siamese/report/aggregate.h"
#include "siamese/report/config_difference.h"
#include "siamese/report/downsample.h"
#include "siamese/report/run_record.h"
#include "siamese/report/statistics.h"
#include "siamese/report/summary.h"

namespace siamese::report {
namespace {

RunRecord finished_run(const std::string& variant, double lr, int64_t seed, double val_loss) {
  RunRecord run;
  run.variant = variant;
  run.lr = lr;
  run.seed = seed;
  run.state = RunState::finished;
  EvalRow row;
  row.step = 100;
  row.loss = val_loss;
  row.correct = 30;
  row.count = 100;
  row.groups = {{"+", 1, 20, 50}, {"+", 2, 10, 50}};
  run.evals = {row};
  return run;
}

TEST(Statistics, MeanAndSampleSpread) {
  const MeanSpread spread = mean_spread({1, 2, kMissing, 6});
  EXPECT_EQ(spread.count, 3u);
  EXPECT_DOUBLE_EQ(spread.mean, 3);
  EXPECT_DOUBLE_EQ(spread.spread, std::sqrt(7.0));
  EXPECT_EQ(spread.low, 1);
  EXPECT_EQ(spread.high, 6);
  EXPECT_TRUE(std::isnan(mean_spread({4}).spread));
  EXPECT_TRUE(std::isnan(mean_spread({}).mean));
}

TEST(Statistics, Median) {
  EXPECT_DOUBLE_EQ(median({5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Statistics, RoundsToSignificantDigits) {
  EXPECT_EQ(round_significant(0.123456, 3), 0.123);
  EXPECT_EQ(round_significant(-98765, 2), -99000);
  EXPECT_EQ(round_significant(0, 3), 0);
  EXPECT_TRUE(std::isnan(round_significant(kMissing, 3)));
}

TEST(Downsample, ShortRunsAreKeptStepByStep) {
  const StepGrid grid(StepGrid::kExactSteps);
  EXPECT_TRUE(grid.exact());
  EXPECT_EQ(grid.size(), StepGrid::kExactSteps);
  EXPECT_EQ(grid.first_step(17), 18);
  EXPECT_EQ(grid.last_step(17), 18);
}

TEST(Downsample, BucketsCoverEveryStepOnce) {
  for (int64_t last : {2001, 5000, 100000, 123457}) {
    const StepGrid grid(last);
    EXPECT_LE(grid.size(), StepGrid::kFineSteps + StepGrid::kCoarseBuckets) << last;
    EXPECT_EQ(grid.first_step(0), 1);
    EXPECT_EQ(grid.last_step(grid.size() - 1), last);
    for (int64_t bucket = 0; bucket < grid.size(); ++bucket) {
      ASSERT_LE(grid.first_step(bucket), grid.last_step(bucket));
      ASSERT_EQ(grid.bucket(grid.first_step(bucket)), bucket);
      ASSERT_EQ(grid.bucket(grid.last_step(bucket)), bucket);
      ASSERT_EQ(grid.first_step(bucket), bucket > 0 ? grid.last_step(bucket - 1) + 1 : 1);
    }
  }
}

TEST(Downsample, KeepsExtremesAndLeavesOutNonFinite) {
  const int64_t last = 100000;
  std::vector<int64_t> steps;
  std::vector<double> values;
  for (int64_t step = 1; step <= last; ++step) {
    steps.push_back(step);
    values.push_back(step == 54321 ? 99.0 : step == 77777 ? -7.0 : step == 60000 ? kMissing : 1.0);
  }
  const StepGrid grid(last);
  const BucketedCurve curve = bucket_curve(grid, steps, values);
  const auto bucket = [&](int64_t step) { return static_cast<size_t>(grid.bucket(step)); };
  EXPECT_EQ(curve.high[bucket(54321)], 99.0);
  EXPECT_EQ(curve.low[bucket(77777)], -7.0);
  EXPECT_EQ(curve.mean[bucket(60000)], 1.0);
  EXPECT_EQ(*std::max_element(curve.high.begin(), curve.high.end()), 99.0);
}

TEST(Downsample, EmptyBucketsAreMissing) {
  const StepGrid grid(10);
  const BucketedCurve curve = bucket_curve(grid, {2, 5}, {1.5, kMissing});
  ASSERT_EQ(curve.mean.size(), 5u);
  EXPECT_TRUE(std::isnan(curve.mean[0]));
  EXPECT_EQ(curve.mean[1], 1.5);
  EXPECT_TRUE(std::isnan(curve.mean[4]));
}

TEST(Downsample, ThinningStaysEvenAndBounded) {
  Thinning thinning(60);
  std::vector<int64_t> kept;
  for (int64_t index = 0; index < 10000; ++index) {
    if (!thinning.wants(index)) continue;
    kept.push_back(index);
    thinning.taken(kept);
  }
  EXPECT_LE(kept.size(), 60u);
  EXPECT_GE(kept.size(), 30u);
  for (size_t i = 2; i < kept.size(); ++i) EXPECT_EQ(kept[i] - kept[i - 1], kept[1] - kept[0]);
}

TEST(Aggregate, MeanOverFinishedSeedsAndDivergedCounted) {
  std::vector<RunRecord> runs{finished_run("pre", 0.002, 2, 0.8), finished_run("pre", 0.001, 1, 0.9),
                              finished_run("siamese", 0.002, 1, 0.5), finished_run("pre", 0.002, 1, 0.6),
                              finished_run("pre", 0.002, 3, 100.0)};
  runs[4].state = RunState::diverged;
  const auto groups = group_results(runs);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].lr, 0.001);  // rates ascend within the variant that came first
  const ResultGroup& pre = groups[1];
  EXPECT_EQ(pre.variant, "pre");
  EXPECT_EQ(pre.runs, (std::vector<size_t>{3, 0, 4}));  // by seed
  EXPECT_EQ(pre.finished, 2u);
  EXPECT_EQ(pre.diverged, 1u);
  EXPECT_FALSE(pre.partial);
  EXPECT_EQ(pre.val_loss.count, 2u);
  EXPECT_DOUBLE_EQ(pre.val_loss.mean, 0.7);
  EXPECT_NEAR(pre.val_loss.spread, 0.1 * std::sqrt(2.0), 1e-12);
  EXPECT_DOUBLE_EQ(pre.accuracy.mean, 0.3);
  ASSERT_EQ(pre.accuracy_groups.size(), 2u);  // pooled over the two finished runs only
  EXPECT_EQ(pre.accuracy_groups[0].correct, 40);
  EXPECT_EQ(pre.accuracy_groups[0].count, 100);
  EXPECT_EQ(groups[2].variant, "siamese");
}

TEST(Aggregate, UnfinishedRunsCountOnlyWhileNoneHasFinished) {
  std::vector<RunRecord> runs{finished_run("pre", 0.002, 1, 0.8), finished_run("pre", 0.002, 2, 0.4)};
  runs[1].state = RunState::running;
  EXPECT_DOUBLE_EQ(group_results(runs)[0].val_loss.mean, 0.8);
  runs[0].state = RunState::stopped;
  EXPECT_TRUE(group_results(runs)[0].partial);
  EXPECT_DOUBLE_EQ(group_results(runs)[0].val_loss.mean, 0.6);
}

TEST(Aggregate, AllDivergedHasNoMean) {
  std::vector<RunRecord> runs{finished_run("post", 0.01, 1, 3)};
  runs[0].state = RunState::diverged;
  const auto groups = group_results(runs);
  EXPECT_EQ(groups[0].val_loss.count, 0u);
  EXPECT_FALSE(groups[0].partial);
  EXPECT_TRUE(groups[0].accuracy_groups.empty());
}

TEST(Aggregate, RunsWithoutALearningRateFormOneGroup) {
  std::vector<RunRecord> runs{finished_run("pre", kMissing, 1, 1), finished_run("pre", kMissing, 2, 2)};
  EXPECT_EQ(group_results(runs).size(), 1u);
}

TEST(Summary, MarkdownTable) {
  std::vector<RunRecord> runs{finished_run("pre", 0.002, 1, 0.6), finished_run("pre", 0.002, 2, 0.8),
                              finished_run("a|b", 0.01, 1, 1)};
  runs[2].state = RunState::diverged;
  runs[0].progress = runs[1].progress = 1;
  EXPECT_EQ(
      summary_markdown(group_results(runs)),
      "| variant |    lr |         val loss |      accuracy | runs | diverged | stuck | tokens/s |\n"
      "|---------|------:|-----------------:|--------------:|-----:|---------:|------:|---------:|\n"
      "| pre     | 0.002 | 0.7000 +- 0.1414 | 30.0 +- 0.0 % |    2 |        0 |     0 |        - |\n"
      "| a\\|b    |  0.01 |                - |             - |    1 |        1 |     - |        - |\n"
      "\nDiverged: not finite, or trained from scratch and worse at the end than before the first step. Such runs "
      "have no final\nloss: means are over the others, and say over how many.\n");
}

TEST(Summary, MarksWhatHasNotFinished) {
  std::vector<RunRecord> runs{finished_run("pre", 0.002, 1, 0.6)};
  runs[0].state = RunState::running;
  const std::string table = summary_markdown(group_results(runs));
  EXPECT_NE(table.find("0.6000*"), std::string::npos) << table;
  EXPECT_NE(table.find("no run has finished yet"), std::string::npos) << table;
}

TEST(RunRecord, WhatTheTablesShow) {
  RunRecord run;
  for (int64_t step = 1; step <= 100; ++step) {
    run.metrics.step.push_back(step);
    run.metrics.loss.push_back(step <= 50 ? 9 : step == 100 ? kMissing : 2);
  }
  EXPECT_DOUBLE_EQ(run.final_train_loss(), 2);  // the last 50 steps, without the one that is not finite
  run.metrics.tokens_per_s = {10, 300, 100};
  EXPECT_DOUBLE_EQ(run.median_tokens_per_s(), 200);  // without the first step
  run.metrics.tokens_per_s = {10};
  EXPECT_DOUBLE_EQ(run.median_tokens_per_s(), 10);
  run.metrics.step_ms = {500, kMissing, 1500};
  EXPECT_DOUBLE_EQ(run.seconds(), 2);
  run.evals = {{10, 0.9, 3, 4, {}}, {20, 0.8, 0, 0, {}}};
  EXPECT_DOUBLE_EQ(run.final_val_loss(), 0.8);
  EXPECT_DOUBLE_EQ(run.final_accuracy(), 0.75);  // the last evaluation that measured it
}

TEST(ConfigDifference, OnlyWhatDiffers) {
  std::vector<RunRecord> runs(4);
  runs[0].config = {{"model.width", "64"}, {"optim.lr", "0.001"}};
  runs[1].config = {{"model.width", "64"}, {"optim.lr", "0.002"}, {"engine.threads", "2"}};
  runs[3].config = {{"model.width", "64"}, {"optim.lr", "0.001"}, {"engine.threads", "2"}};
  const auto differences = config_differences(runs);  // the run without a config makes nothing differ
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "optim.lr");
  EXPECT_EQ(differences[0].values, (std::vector<std::string>{"0.001", "0.002", "", "0.001"}));
  EXPECT_EQ(differences[1].key, "engine.threads");
}

}  // namespace
}  // namespace siamese::report

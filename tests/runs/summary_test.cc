#include "siamese/runs/summary.h"

#include <cmath>
#include <fstream>

#include "tests/runs/support.h"

#include "siamese/runs/step_record.h"

namespace siamese::runs {
namespace {

TEST(Numbers, OfTheLastFiftyStepsTheFiniteOnes) {
  std::vector<double> values;
  for (int i = 1; i <= 60; ++i) values.push_back(i);
  EXPECT_EQ(mean_of_last(values), (11 + 60) / 2.0);
  values.back() = kNone;
  EXPECT_EQ(mean_of_last(values), (11 + 59) / 2.0);
  EXPECT_TRUE(std::isnan(mean_of_last({})));
  EXPECT_EQ(median_after_first({99, 3, 1, kNone}), 2);
  EXPECT_EQ(median_after_first({7}), 7);
  EXPECT_TRUE(std::isnan(median_after_first({7, kNone})));
  EXPECT_EQ(seconds_of({500, kNone, 1500}), 2);
}

TEST_F(FolderTest, ASummaryIsWhatTheFilesSay) {
  RunInfo info;
  info.status = RunStatus::finished;
  info.scheme = info.label = "pre";
  info.parameters = 7;
  info.step_flops = 6e9;
  write_run_file(folder_, info);
  std::ofstream metrics(folder_ / "metrics.jsonl");
  for (int64_t step = 1; step <= 3; ++step) {
    StepRecord record;
    record.step = step;
    record.loss = static_cast<double>(4 - step);
    record.step_ms = 100.0 * static_cast<double>(step);
    record.extra = {{"expert_max_load", 1.0 * static_cast<double>(step)}};
    metrics << to_line(record) << "\n";
  }
  metrics.close();
  EvalRecord eval;
  eval.step = 3;
  eval.loss = 0.5;
  eval.baseline = 2.25;
  eval.diffusion = {{"mse", 0.25}};
  std::ofstream(folder_ / "eval.jsonl") << to_line(eval) << "\n{\"torn";
  const RunSummary summary = summarise_run(folder_);
  EXPECT_EQ(summary.steps, 3);
  EXPECT_EQ(summary.first_loss, 3);
  EXPECT_EQ(summary.train_loss, 2);
  EXPECT_EQ(summary.val_loss, 0.5);
  EXPECT_EQ(summary.parameters, 7);
  EXPECT_EQ(summary.baseline, 2.25);
  EXPECT_EQ(summary.step_flops, 6e9);
  EXPECT_NEAR(summary.seconds, 0.6, 1e-12);
  EXPECT_EQ(summary.step_ms, 250);
  EXPECT_EQ(summary.measures, (NamedNumbers{{"mse", 0.25}, {"expert_max_load", 2}}));
  EXPECT_EQ(summary.curve.last_step, (std::vector<int64_t>{1, 2, 3}));
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"step\":4,\"loss\":\"x\"}\n";
  expect_said(error_of([&] { summarise_run(folder_); }), "metrics.jsonl: line 4: loss");
  info.status = RunStatus::running;
  write_run_file(folder_, info);
  expect_said(error_of([&] { summarise_run(folder_); }), "run.json: status: expected a run that ended");
}

}  // namespace
}  // namespace siamese::runs

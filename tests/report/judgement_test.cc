// Which runs diverged, which are stuck, and what becomes of them in tables.
#include "siamese/report/judgement.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/io/atomic_file.h"
#include "siamese/report/aggregate.h"
#include "siamese/report/report.h"
#include "siamese/report/summary.h"

namespace siamese::report {
namespace {

using Flags = std::vector<bool>;

RunRecord run_that_ends_at(const std::string& variant, double lr, int64_t seed, double val_loss,
                           double baseline = 2.28) {
  RunRecord run;
  run.variant = variant;
  run.lr = lr;
  run.seed = seed;
  run.state = RunState::finished;
  run.evals = {{.step = 100, .loss = val_loss, .baseline = baseline}};
  return run;
}

Flags stuck(const std::vector<RunRecord>& runs) {
  Flags list;
  for (const RunRecord& run : judge(runs)) list.push_back(run.stuck);
  return list;
}

// The recorded course of a run, as a line has it.
RunRecord recorded_run(int64_t steps, double first_loss, double train_loss, const std::string& from = "\"\"") {
  RunRecord run = run_that_ends_at("pre", 0.01, 1, train_loss);
  run.step = steps;
  run.config = {{"init.from", from}};
  run.recorded = RecordedNumbers{.first_loss = first_loss, .train_loss = train_loss, .baseline = 2.28};
  return run;
}

TEST(Diverged, FromScratchAboveTheFirstLoss) {
  EXPECT_EQ(judge({recorded_run(300, 3, 3.1)})[0].state, RunState::diverged);
  EXPECT_EQ(judge({recorded_run(300, 3, 3.1)})[0].message,
            "loss 3.1 at the end (mean of the last 50 steps) is above the first, 3");
  EXPECT_EQ(judge({recorded_run(300, 3.4, 2.5e12)})[0].state, RunState::diverged);
  EXPECT_EQ(judge({recorded_run(300, 3, 3)})[0].state, RunState::finished);
  EXPECT_EQ(judge({recorded_run(50, 3, 3.1)})[0].state, RunState::finished);  // the first step is one of the last
  EXPECT_EQ(judge({recorded_run(300, kMissing, 3.1)})[0].state, RunState::finished);
}

TEST(Diverged, NotFromTrainedWeights) {
  EXPECT_EQ(judge({recorded_run(300, 1.2, 1.3, "runs/source")})[0].state, RunState::finished);
}

TEST(Diverged, NonFiniteAtItsEndWhereverItStarted) {
  RunRecord run = run_that_ends_at("pre", 0.01, 1, 1);
  run.config = {{"init.from", "runs/source"}};
  run.metrics.step = {1, 2};
  run.metrics.loss = {3, kMissing};
  run.step = 2;
  EXPECT_EQ(judge({run})[0].state, RunState::diverged);
  run.state = RunState::stopped;  // it has not ended
  EXPECT_EQ(judge({run})[0].state, RunState::stopped);
}

TEST(Stuck, ATenthOfTheWayFromTheBaselineToTheBest) {
  // 2.28 to 1.28: the way is 1, a tenth of it ends at 2.18. Schemes and first losses play no part.
  EXPECT_EQ(stuck({run_that_ends_at("siamese", 0.01, 1, 1.28), run_that_ends_at("post", 0.01, 1, 2.185),
                   run_that_ends_at("post", 0.003, 1, 2.175), run_that_ends_at("hybrid", 0.03, 1, 2.5)}),
            (Flags{false, true, false, true}));
  const auto judged = judge({run_that_ends_at("siamese", 0.01, 1, 1.28), run_that_ends_at("post", 0.01, 1, 1.78),
                             run_that_ends_at("hybrid", 0.01, 1, 2.78)});
  EXPECT_DOUBLE_EQ(judged[0].progress, 1);
  EXPECT_DOUBLE_EQ(judged[1].progress, 0.5);
  EXPECT_DOUBLE_EQ(judged[2].progress, -0.5);
}

TEST(Stuck, WhereNobodyLearned) {
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 2.29), run_that_ends_at("hybrid", 0.01, 1, 2.281)}),
            (Flags{true, true}));
  // Alone it is its own best; a fiftieth of the baseline (0.0456) is the least to be called learned.
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 2.24)}), (Flags{true}));
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 2.23)}), (Flags{false}));
}

TEST(Stuck, OnlyRunsOfTheSameTaskAreMeasuredAgainstEachOther) {
  std::vector<RunRecord> runs{run_that_ends_at("pre", 0.01, 1, 2.1), run_that_ends_at("pre", 0.01, 2, 0.1, 3.5)};
  EXPECT_EQ(stuck(runs), (Flags{false, false}));
  runs[1] = run_that_ends_at("pre", 0.01, 2, 0.1);
  EXPECT_EQ(stuck(runs), (Flags{true, false}));
  runs[1].family = "vit";
  EXPECT_EQ(stuck(runs), (Flags{false, false}));
}

TEST(Stuck, NotKnownWithoutABaseline) {
  const auto runs = judge({run_that_ends_at("pre", 0.01, 1, 9, kMissing), run_that_ends_at("pre", 0.01, 2, 1)});
  EXPECT_FALSE(runs[0].stuck);
  EXPECT_TRUE(std::isnan(runs[0].progress));
  const auto groups = group_results({runs[0]});
  EXPECT_EQ(groups[0].judged, 0u);
  const std::string table = summary_markdown(groups);
  EXPECT_NE(table.find("|        0 |     - |"), std::string::npos) << table;
  EXPECT_NE(table.find("Of 1 finished run nobody knows"), std::string::npos) << table;
}

TEST(Stuck, StaysFinishedAndInTheMean) {
  std::vector<RunRecord> runs{run_that_ends_at("span", 0.03, 1, 2.28), run_that_ends_at("span", 0.03, 2, 1.28),
                              run_that_ends_at("span", 0.03, 3, kMissing)};
  runs[2].state = RunState::diverged;
  const auto groups = group_results(judge(runs));
  EXPECT_EQ(groups[0].finished, 2u);
  EXPECT_EQ(groups[0].stuck, 1u);
  EXPECT_EQ(groups[0].diverged, 1u);
  EXPECT_DOUBLE_EQ(groups[0].val_loss.mean, 1.78);
  const std::string table = summary_markdown(groups);
  EXPECT_NE(table.find("1.7800 +- 0.7071 (2 of 3) |        - |    3 |        1 |     1 |"), std::string::npos) << table;
  EXPECT_NE(table.find("Stuck: finished, but"), std::string::npos) << table;
  EXPECT_NE(table.find("means are over the others, and say over how many"), std::string::npos) << table;
}

TEST(Outlier, FarAboveTheBaseline) {
  const std::vector<RunRecord> runs{run_that_ends_at("pre", 0.01, 1, 1), run_that_ends_at("post", 0.01, 1, 6.8),
                                    run_that_ends_at("span", 0.01, 1, 6.9)};
  const auto groups = group_results(runs);
  EXPECT_FALSE(groups[0].outlier);
  EXPECT_FALSE(groups[1].outlier);
  EXPECT_TRUE(groups[2].outlier);
}

TEST(Judgement, InTheTableAndTheReportOfASweep) {
  const auto folder = std::filesystem::temp_directory_path() / ("siamese_judged_test_" + std::to_string(::getpid()));
  write_fake_sweep(
      folder, "demo",
      {FakeRun{.lr = 0.002, .floor = 0.5, .baseline = 2.3}, FakeRun{.lr = 0.02, .floor = 2.3, .baseline = 2.3}});
  const std::string table = summary_table(folder);
  EXPECT_NE(table.find("|    1 |        0 |     1 |"), std::string::npos) << table;
  const std::string page = io::read_file(write_report(folder));
  EXPECT_EQ(page.find("\"state\":\"diverged\""), std::string::npos);
  EXPECT_NE(page.find("\"stuck\":true"), std::string::npos);
  EXPECT_NE(results_line({folder}).find("\"stuck\":true"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace siamese::report

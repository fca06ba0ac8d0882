// When a run whose numbers are all finite still counts as diverged.
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

RunRecord run_that_ends_at(const std::string& variant, double lr, int64_t seed, double val_loss, double first = 4) {
  RunRecord run;
  run.variant = variant;
  run.lr = lr;
  run.seed = seed;
  run.state = RunState::finished;
  run.metrics.step = {1};
  run.metrics.loss = {first};
  run.evals = {{100, val_loss, 0, 0, {}}};
  return run;
}

std::vector<bool> stuck(const std::vector<RunRecord>& runs) {
  std::vector<bool> list;
  for (const RunRecord& run : mark_stuck(runs)) list.push_back(run.stuck);
  return list;
}

using Flags = std::vector<bool>;

TEST(Stuck, AboveHalfWhereAnotherRateLearns) {
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 2.1), run_that_ends_at("post", 0.001, 1, 2.0)}),
            (Flags{true, false}));
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 2.0), run_that_ends_at("post", 0.001, 1, 2.0)}),
            (Flags{false, false}));  // exactly half is learned
}

TEST(Stuck, NotWhereTheVariantLearnsAtNoRate) {
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 3), run_that_ends_at("post", 0.001, 1, 2.1)}),
            (Flags{false, false}));
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 3), run_that_ends_at("pre", 0.001, 1, 0.5)}),
            (Flags{false, false}));  // another variant proves nothing
  EXPECT_EQ(stuck({run_that_ends_at("post", 0.01, 1, 3), run_that_ends_at("post", 0.01, 2, 0.5)}),
            (Flags{false, false}));  // nor does another seed at the same rate
}

TEST(Stuck, TheOtherRateIsJudgedByTheMeanOfItsFinishedRuns) {
  std::vector<RunRecord> runs{run_that_ends_at("post", 0.01, 1, 3), run_that_ends_at("post", 0.001, 1, 1.0),
                              run_that_ends_at("post", 0.001, 2, 3.5)};
  EXPECT_EQ(stuck(runs), (Flags{false, false, false}));  // mean 2.25
  runs[2].state = RunState::running;
  EXPECT_EQ(stuck(runs), (Flags{true, false, false}));
  runs[1].state = RunState::running;
  EXPECT_EQ(stuck(runs), (Flags{false, false, false}));
}

TEST(Stuck, TrainingLossWhereNothingWasHeldOut) {
  std::vector<RunRecord> runs{run_that_ends_at("post", 0.01, 1, kMissing), run_that_ends_at("post", 0.001, 1, 1)};
  runs[0].evals.clear();
  runs[0].metrics = {};
  runs[0].recorded = RecordedNumbers{.first_loss = 4, .train_loss = 2.5};
  EXPECT_EQ(stuck(runs), (Flags{true, false}));
  runs[0].recorded->first_loss = kMissing;  // nothing to compare with
  EXPECT_EQ(stuck(runs), (Flags{false, false}));
}

TEST(Stuck, CountedAsDivergedAndNotAveraged) {
  std::vector<RunRecord> runs{run_that_ends_at("post", 0.01, 1, 3), run_that_ends_at("post", 0.01, 2, 1),
                              run_that_ends_at("post", 0.001, 1, 0.5), run_that_ends_at("post", 0.01, 3, kMissing)};
  runs[3].state = RunState::diverged;
  const auto marked = mark_stuck(runs);
  EXPECT_EQ(marked[0].state, RunState::diverged);
  EXPECT_EQ(marked[0].message,
            "stuck: loss 3.0000 at the end is above half of the first, 4.0000; at lr 0.001 it ends at 0.5000");
  EXPECT_FALSE(marked[3].stuck);
  const auto groups = group_results(marked);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[1].diverged, 2u);
  EXPECT_EQ(groups[1].stuck, 1u);
  EXPECT_EQ(groups[1].finished, 1u);
  EXPECT_EQ(groups[1].val_loss.count, 1u);
  EXPECT_EQ(groups[1].val_loss.mean, 1);
  const std::string table = summary_markdown(groups);
  EXPECT_NE(table.find("| post    |  0.01 |   1.0000 |        - |    3 |        2 |"), std::string::npos) << table;
  EXPECT_NE(table.find("1 of the diverged runs is stuck"), std::string::npos) << table;
  EXPECT_NE(table.find("above half of the first"), std::string::npos) << table;
  EXPECT_EQ(summary_markdown(group_results({runs[1]})).find("stuck"), std::string::npos);
}

TEST(Stuck, InTheTableAndTheReportOfASweep) {
  const auto folder = std::filesystem::temp_directory_path() / ("siamese_stuck_test_" + std::to_string(::getpid()));
  write_fake_sweep(folder, "demo", {FakeRun{.lr = 0.002, .floor = 0.5}, FakeRun{.lr = 0.02, .floor = 2.5}});
  EXPECT_NE(summary_table(folder).find("1 of the diverged runs is stuck"), std::string::npos) << summary_table(folder);
  const std::string page = io::read_file(write_report(folder));
  EXPECT_NE(page.find("\"state\":\"diverged\""), std::string::npos);
  EXPECT_NE(page.find("stuck: loss 2.6"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace siamese::report

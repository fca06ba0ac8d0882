// The rule of "diverged", case by case.
#include "siamese/runs/outcome.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/runs/eval_record.h"
#include "siamese/runs/step_record.h"

namespace siamese::runs {
namespace {

namespace fs = std::filesystem;

// `first`, then `last` to the end.
std::vector<double> losses(double first, double last, size_t steps) {
  std::vector<double> list(steps, last);
  list[0] = first;
  return list;
}

std::string judged(const std::vector<double>& list, bool from_scratch = true) {
  return divergence(course_of(list, from_scratch));
}

TEST(Outcome, AboveTheFirstLossFromScratch) {
  EXPECT_EQ(judged(losses(3, 3.001, 51)), "loss 3.001 at the end (mean of the last 50 steps) is above the first, 3");
  EXPECT_EQ(judged(losses(3, 3, 51)), "");
  EXPECT_EQ(judged(losses(3, 2, 51)), "");
  EXPECT_EQ(judged(losses(3.37, 2.5e12, 300)),
            "loss 2.5e+12 at the end (mean of the last 50 steps) is above the first, 3.37");
  // The first step is one of the last 50: hardly begun, unless it explodes.
  EXPECT_EQ(judged(losses(3, 5, 50)), "");
  EXPECT_EQ(judged(losses(3, 2.5e12, 50)),
            "loss 2.45e+12 at the end (mean of the last 50 steps) is above twice the first, 3");
  EXPECT_EQ(judged(losses(3, 9e12, 3)), "loss 6e+12 at the end (mean of the last 3 steps) is above twice the first, 3");
  EXPECT_EQ(judged({3}), "");
  EXPECT_EQ(judged(losses(3, 3.1, 300), /*from_scratch=*/false), "");
}

TEST(Outcome, TheMeanIsOfTheLastFiftyAlone) {
  std::vector<double> list(200, 1);
  list[0] = 3;
  list[120] = 1e6;  // a spike that is over
  EXPECT_EQ(judged(list), "");
  list[199] = 1000;  // and one that is not: (49 + 1000) / 50 is above 3
  EXPECT_NE(judged(list), "");
}

TEST(Outcome, NotFiniteAtTheEndWhereverItStarted) {
  for (const bool from_scratch : {true, false}) {
    EXPECT_EQ(judged({3, 2, kNone}, from_scratch), "not finite at its end, step 3");
    EXPECT_EQ(judged({3, kNone, 2}, from_scratch), "");  // it went on: such a step is skipped
  }
  EXPECT_EQ(judged({}), "");
}

TEST(Outcome, WhatStartsFromACheckpointIsNotFromScratch) {
  EXPECT_TRUE(starts_from_scratch({}));
  EXPECT_TRUE(starts_from_scratch({{"init.from", "\"\""}}));
  EXPECT_TRUE(starts_from_scratch({{"init.from", ""}}));
  EXPECT_FALSE(starts_from_scratch({{"init.from", "runs/pre"}}));
}

TEST(Outcome, ReadFromARunDirectory) {
  const fs::path folder = fs::temp_directory_path() / ("siamese_outcome_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::string text;
  for (int64_t step = 1; step <= 60; ++step) {
    StepRecord line;
    line.step = step;
    line.loss = step == 1 ? 3 : 4;
    text += to_line(line) + "\n";
  }
  io::write_file_atomic(folder / io::kMetricsFile, text);
  EXPECT_NE(divergence(read_course(folder, true)), "");
  EXPECT_EQ(divergence(read_course(folder, false)), "");
  const auto evaluate = [&](double loss, int64_t targets) {
    EvalRecord line;
    line.step = 60;
    line.loss = loss;
    line.targets = targets;
    io::write_file_atomic(folder / io::kEvalFile, to_line(line) + "\n");
  };
  evaluate(2, 100);
  EXPECT_EQ(divergence(read_course(folder, false)), "");
  evaluate(kNone, 100);
  EXPECT_EQ(divergence(read_course(folder, false)), "not finite at its end, step 60");
  evaluate(kNone, 0);  // nothing was asked
  EXPECT_EQ(divergence(read_course(folder, false)), "");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace siamese::runs

#include "siamese/plan/checkpoint_interval.h"

#include <cmath>

#include <gtest/gtest.h>

namespace siamese::plan {
namespace {

TEST(CheckpointInterval, IsYoungsForShortWrites) {
  EXPECT_NEAR(best_interval_seconds(1e-3, 1e9), std::sqrt(2 * 1e-3 * 1e9), 1e-2);
}

// Daly's exact expected time of a run of length 1: with failures of a Poisson process and a restart,
//   mean e^(restart / mean) (e^((interval + write) / mean) - 1) / interval.
double expected_time(double interval, double write, double mean) {
  return mean * std::expm1((interval + write) / mean) / interval;
}

TEST(CheckpointInterval, IsTheBestOfTheExactTime) {
  for (const double write : {5.0, 60.0, 600.0}) {
    const double mean = 7200, found = best_interval_seconds(write, mean);
    double best = 1;
    for (double interval = 1; interval < 20000; interval += 1) {
      if (expected_time(interval, write, mean) < expected_time(best, write, mean)) best = interval;
    }
    EXPECT_NEAR(found, best, 0.01 * best) << write;
  }
}

TEST(CheckpointInterval, NeverPastTheTimeBetweenFailures) { EXPECT_EQ(best_interval_seconds(500, 100), 100); }

TEST(CheckpointInterval, WhatIsLost) {
  EXPECT_DOUBLE_EQ(lost_share(1000, 10, 100'000, 490), 0.01 + 0.01);
  EXPECT_EQ(lost_share(100, 50, 10, 1000), 1);
  // First order of the exact time.
  EXPECT_NEAR(expected_time(3000, 5, 1e6), 1 + lost_share(3000, 5, 1e6, 0), 1e-5);
}

TEST(CheckpointInterval, OfAMachine) {
  Machine machine;
  machine.devices = 100;
  machine.mean_hours_between_failures = 1000;
  machine.disk_bytes_each_second = 2e9;
  const Saving found = saving(machine, 20e9);
  EXPECT_DOUBLE_EQ(found.write_seconds, 10);
  EXPECT_DOUBLE_EQ(found.failure_seconds, 36000);
  EXPECT_DOUBLE_EQ(found.interval_seconds, best_interval_seconds(10, 36000));
  EXPECT_DOUBLE_EQ(found.lost_share, lost_share(found.interval_seconds, 10, 36000, machine.restart_seconds));
}

}  // namespace
}  // namespace siamese::plan

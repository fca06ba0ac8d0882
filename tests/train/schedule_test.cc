#include "siamese/train/schedule.h"

#include <gtest/gtest.h>

namespace siamese::train {
namespace {

TEST(Schedule, WarmUpReachesThePeak) {
  const ScheduleConfig schedule{.kind = ScheduleKind::constant, .warmup = 4, .warmup_from = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1.0, 0, 100), 0.2 + 0.8 / 4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1.0, 3, 100), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1.0, 50, 100), 1.0);
}

TEST(Schedule, Cosine) {
  const ScheduleConfig schedule{.kind = ScheduleKind::cosine, .warmup = 10, .final = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2.0, 10, 110), 2.0);
  EXPECT_NEAR(learning_rate(schedule, 2.0, 60, 110), 2.0 * 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 2.0, 110, 110), 0.2, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 2.0, 500, 110), 0.2, 1e-12);
}

TEST(Schedule, LinearAndWsd) {
  const ScheduleConfig linear{.kind = ScheduleKind::linear, .final = 0.0};
  EXPECT_DOUBLE_EQ(learning_rate(linear, 1.0, 25, 100), 0.75);
  const ScheduleConfig wsd{.kind = ScheduleKind::wsd, .warmup = 10, .final = 0.0, .decay = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 1.0, 79, 100), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 1.0, 90, 100), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 1.0, 0, 100), 0.1);
}

TEST(Schedule, NoStepIsLostWhenWarmUpIsTheWholeRun) {
  const ScheduleConfig schedule{.kind = ScheduleKind::cosine, .warmup = 10};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1.0, 9, 10), 1.0);
}

}  // namespace
}  // namespace siamese::train

#include "siamese/report/live_curve.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace siamese::report {
namespace {

double value_at(int64_t step) { return step == 3333 ? 1000.0 : static_cast<double>(step % 17); }

TEST(LiveCurve, ShortOnesAreKeptStepByStep) {
  LiveCurve curve;
  for (int64_t step = 1; step <= 512; ++step) curve.add(step, value_at(step), 2);
  EXPECT_EQ(curve.width(), 1);
  ASSERT_EQ(curve.buckets().size(), 512u);
  EXPECT_EQ(curve.buckets()[40][LiveCurve::loss].mean(), value_at(41));
}

TEST(LiveCurve, LongOnesAreBoundedExactAndKeepTheirSpikes) {
  LiveCurve curve;
  for (int64_t step = 1; step <= 5000; ++step) curve.add(step, value_at(step), 1.0 / static_cast<double>(step));
  EXPECT_EQ(curve.width(), 16);
  ASSERT_EQ(curve.buckets().size(), 313u);  // ceil(5000 / 16)
  for (int64_t at = 0; at < 313; ++at) {
    double sum = 0, high = 0;
    int64_t count = 0;
    for (int64_t step = 16 * at + 1; step <= std::min<int64_t>(16 * at + 16, 5000); ++step, ++count) {
      sum += value_at(step);
      high = std::max(high, value_at(step));
    }
    const BucketOfSteps& bucket = curve.buckets()[static_cast<size_t>(at)][LiveCurve::loss];
    EXPECT_EQ(bucket.count, count);
    EXPECT_DOUBLE_EQ(bucket.mean(), sum / static_cast<double>(count));
    EXPECT_EQ(bucket.high, high);
  }
  EXPECT_EQ(curve.buckets()[3332 / 16][LiveCurve::loss].high, 1000);
}

TEST(LiveCurve, OnlyTheLastBucketChangesWithinAnEpoch) {
  LiveCurve curve;
  for (int64_t step = 1; step <= 700; ++step) curve.add(step, 1, 1);
  const uint64_t epoch = curve.epoch();
  const auto before = curve.buckets();
  curve.add(701, 5, 5);
  EXPECT_EQ(curve.epoch(), epoch);
  for (size_t at = 0; at + 1 < before.size(); ++at) EXPECT_EQ(curve.buckets()[at][0].count, before[at][0].count);
  for (int64_t step = 702; step <= 1025; ++step) curve.add(step, 1, 1);  // one more than 512 buckets of two
  EXPECT_EQ(curve.width(), 4);
  EXPECT_NE(curve.epoch(), epoch);
}

TEST(LiveCurve, StepsWrittenAgainReplaceTheOlder) {
  LiveCurve curve;
  for (int64_t step = 1; step <= 10; ++step) curve.add(step, 1, 1);
  const uint64_t epoch = curve.epoch();
  curve.add(6, 9, 9);
  EXPECT_NE(curve.epoch(), epoch);
  ASSERT_EQ(curve.buckets().size(), 6u);
  EXPECT_EQ(curve.buckets()[5][LiveCurve::loss].mean(), 9);
  EXPECT_EQ(curve.buckets()[4][LiveCurve::loss].mean(), 1);
}

TEST(LiveCurve, MissingValuesAndWildStepsDoNoHarm) {
  LiveCurve curve;
  curve.add(1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(curve.buckets()[0][LiveCurve::loss].mean()));
  curve.add(std::numeric_limits<int64_t>::max() - 1, 2, 2);
  EXPECT_LE(curve.buckets().size(), LiveCurve::kMostBuckets);
  EXPECT_EQ(curve.buckets().back()[LiveCurve::loss].mean(), 2);
}

}  // namespace
}  // namespace siamese::report

// Which courses of a run are worth an alert, and which are not.
#include "siamese/report/live_alerts.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "siamese/base/random.h"

namespace siamese::report {
namespace {

class LiveAlertsTest : public ::testing::Test {
 protected:
  void take(int64_t step, double loss) {
    runs::StepRecord record;
    record.step = step;
    record.loss = loss;
    take(record);
  }
  void take(const runs::StepRecord& record) {
    curve_.add(record.step, record.loss, record.grad_norm);
    alerts_.take(record);
  }
  void course(int64_t steps, const std::function<double(int64_t)>& loss) {
    for (int64_t step = curve_.last_step() + 1, last = step + steps; step < last; ++step) take(step, loss(step));
  }
  // Kinds, in order, with a space behind each.
  std::string kinds(bool running = true) const {
    std::string all;
    for (const Alert& alert : alerts_.alerts(curve_, running)) all += alert.kind + " ";
    return all;
  }
  static double noise(int64_t step) { return random_normal(7, 1, static_cast<uint64_t>(step), 2.5); }
  static double falling(int64_t step) {
    return (1 + 2 * std::exp(-static_cast<double>(step) / 700)) * (1 + 0.02 * noise(step));
  }
  static runs::StepRecord recorded(int64_t step, double x, double y) {
    runs::StepRecord record;
    record.step = step;
    record.loss = 1;
    record.sites = {{.site = 0, .block = 0, .kind = "attention", .streams = {{"X", 1, 1}, {"Y", 1, 1}}},
                    {.site = 1, .block = 0, .kind = "ffn", .streams = {{"X", x, 1}, {"Y", y, 1}}}};
    return record;
  }

  LiveCurve curve_;
  LiveAlerts alerts_;
};

TEST_F(LiveAlertsTest, AnOrdinaryRunHasNone) {
  course(2000, falling);
  EXPECT_EQ(kinds(), "");
}

TEST_F(LiveAlertsTest, ASpikeIsNamedWithItsStepOncePerEpisode) {
  course(400, falling);
  const double before = falling(400);
  take(401, 4 * before);
  take(402, 6 * before);
  take(403, 3 * before);
  course(300, falling);
  ASSERT_EQ(kinds(), "spike ");
  const Alert alert = alerts_.alerts(curve_, true).front();
  EXPECT_EQ(alert.step, 402);
  EXPECT_EQ(alert.text.find("so far"), std::string::npos) << alert.text;
  take(704, 9);
  EXPECT_NE(alerts_.alerts(curve_, true).front().text.find("; 2 so far"), std::string::npos);
}

TEST_F(LiveAlertsTest, WhatFallsFastOrIsNoisyAtFirstIsNoSpike) {
  course(19, [](int64_t step) { return step % 2 == 0 ? 8.0 : 2.0; });
  EXPECT_EQ(kinds(), "");
}

TEST_F(LiveAlertsTest, ASmallRiseOfASteadyLossIsNoSpike) {
  course(100, [](int64_t step) { return 2 + 1e-5 * noise(step); });
  take(101, 2.15);  // thousands of deviations, but less than a tenth
  EXPECT_EQ(kinds(), "");
  take(102, 2.3);
  EXPECT_EQ(kinds(), "spike ");
}

TEST_F(LiveAlertsTest, SkippedStepsAreCounted) {
  runs::StepRecord record;
  record.step = 5;
  record.loss = 1;
  record.skipped = true;
  record.skip_reason = "grad_norm";
  take(record);
  record.step = 9;
  take(record);
  ASSERT_EQ(kinds(), "skipped ");
  EXPECT_EQ(alerts_.alerts(curve_, true).front().text, "step 9 changed nothing (grad_norm); 2 so far");
}

TEST_F(LiveAlertsTest, APlateauIsSaidWhileTheRunGoesOn) {
  course(249, [](int64_t step) { return 2.27 + 0.0001 * noise(step); });
  EXPECT_EQ(kinds(), "");  // too early to tell
  course(1, [](int64_t) { return 2.27; });
  EXPECT_EQ(kinds(), "plateau ");
  EXPECT_EQ(kinds(false), "");
}

TEST_F(LiveAlertsTest, APlateauEndsWhenTheLossFallsAgain) {
  course(600, [](int64_t) { return 2.0; });
  EXPECT_EQ(kinds(), "plateau ");
  course(200, [](int64_t step) { return 2.0 - 0.002 * static_cast<double>(step - 600); });
  EXPECT_EQ(kinds(), "");
}

TEST_F(LiveAlertsTest, AStreamThatCollapsesIsNamedWithItsSite) {
  take(recorded(1, 5, 1));
  take(recorded(100, 0.2, 30));
  EXPECT_EQ(kinds(false), "");
  take(recorded(200, 0.09, 40));  // below 5 / 50
  ASSERT_EQ(kinds(false), "collapse ");
  EXPECT_EQ(alerts_.alerts(curve_, true).front().text, "stream X at site 1: RMS 0.09 at step 200, 5 at step 1");
  take(recorded(300, 4, 40));  // it came back
  EXPECT_EQ(kinds(false), "");
}

}  // namespace
}  // namespace siamese::report

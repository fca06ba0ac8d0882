#include "siamese/base/duration.h"

#include <cmath>

#include <gtest/gtest.h>

namespace siamese {
namespace {

TEST(Duration, AsPeopleSayIt) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(760), "12m40s");
  EXPECT_EQ(duration_text(12000), "3h20m");
  EXPECT_EQ(duration_text(400 * 3600.0), "400h00m");
}

TEST(Duration, WhatIsNoTime) {
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(NAN), "?");
  EXPECT_EQ(duration_text(INFINITY), "?");
}

}  // namespace
}  // namespace siamese

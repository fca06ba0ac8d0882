#include "siamese/measure/timing.h"

#include <gtest/gtest.h>

namespace siamese::measure {
namespace {

TEST(Timing, QuantilesLieBetweenNeighbours) {
  const std::vector<double> values = {5, 1, 3, 2, 4};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 0.375), 2.5);
  EXPECT_EQ(quantile(values, 1), 5);
  EXPECT_EQ(quantile({7}, 0.9), 7);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

// Tables of the sign test: with 12 values the third from either end, with 16 the fourth, with 1000 the 469th.
TEST(Timing, TheMedianLiesBetweenTwoOfTheValues) {
  const auto ranks = [](int count) {
    std::vector<double> values;
    for (int i = count; i > 0; --i) values.push_back(i);
    const MedianInterval within = median_interval(values);
    return std::pair(within.low, within.high);
  };
  EXPECT_EQ(ranks(1), std::pair(1., 1.));
  EXPECT_EQ(ranks(5), std::pair(1., 5.));
  EXPECT_EQ(ranks(6), std::pair(1., 6.));
  EXPECT_EQ(ranks(9), std::pair(2., 8.));
  EXPECT_EQ(ranks(12), std::pair(3., 10.));
  EXPECT_EQ(ranks(16), std::pair(4., 13.));
  EXPECT_EQ(ranks(200), std::pair(86., 115.));
  EXPECT_EQ(ranks(1000), std::pair(469., 532.));
  EXPECT_TRUE(std::isnan(median_interval({}).low));
}

}  // namespace
}  // namespace siamese::measure

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

}  // namespace
}  // namespace siamese::measure

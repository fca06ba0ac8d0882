#include <vector>

#include <gtest/gtest.h>

#include "siamese/base/memory_use.h"
#include "siamese/base/timing.h"

namespace siamese {
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

TEST(MemoryUse, PeakRemembersWhatWasGivenBack) {
  const MemoryUse before = memory_use();
  EXPECT_GT(before.resident_mb, 0);
  {
    const std::vector<char> touched(size_t{64} << 20, 1);
    EXPECT_GT(memory_use().resident_mb, before.resident_mb + 60);
  }
  EXPECT_GT(memory_use().peak_mb, before.resident_mb + 60);
}

}  // namespace
}  // namespace siamese

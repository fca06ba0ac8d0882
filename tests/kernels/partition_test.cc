#include "siamese/kernels/partition.h"

#include <gtest/gtest.h>

namespace siamese::kernels {
namespace {

void expect_cover(const Partition& partition, int64_t size) {
  ASSERT_EQ(partition.size, size);
  ASSERT_LE(partition.parts, kMaxParts);
  int64_t at = 0;
  for (int64_t part = 0; part < partition.parts; ++part) {
    ASSERT_EQ(partition.begin(part), at);
    ASSERT_GE(partition.end(part) - at, size / partition.parts);
    ASSERT_LE(partition.end(part) - at, size / partition.parts + 1);
    at = partition.end(part);
  }
  ASSERT_EQ(at, size);
}

TEST(Partition, CoversInOrderWithoutGaps) {
  for (int64_t size : {1, 2, 63, 64, 65, 8191, 8192, 8193, 100000, 524288, 524289, 1 << 30}) {
    expect_cover(partition_elements(size), size);
    for (int64_t cols : {1, 64, 2048, 20000}) expect_cover(partition_rows(size, cols), size);
  }
}

TEST(Partition, NothingHasNoParts) {
  EXPECT_EQ(partition_elements(0).parts, 0);
  EXPECT_EQ(partition_rows(0, 64).parts, 0);
}

TEST(Partition, SmallWorkIsNotCutAndRowsStayWhole) {
  EXPECT_EQ(partition_elements(kPartElements).parts, 1);
  EXPECT_EQ(partition_elements(kPartElements + 1).parts, 2);
  EXPECT_EQ(partition_rows(4, 0).parts, 1);
  EXPECT_EQ(partition_rows(3, 1 << 20).parts, 3);
  EXPECT_EQ(partition_rows(3072, 64).parts, 24);
  EXPECT_EQ(partition_rows(1 << 20, 1 << 20).parts, kMaxParts);
}

}  // namespace
}  // namespace siamese::kernels

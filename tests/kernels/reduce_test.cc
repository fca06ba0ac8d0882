#include "siamese/kernels/reduce.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/partition.h"
#include "siamese/kernels/reference/reduce.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(Reduce);

// Two double sums of n terms in any order differ by at most 2 n roundings of the sum of magnitudes.
TEST_P(Reduce, EqualsTheReference) {
  for (int64_t size : kWidths) {
    for (int64_t begin : {0, 1, 5}) {
      const std::vector<float> x = random_floats(begin + size, "x", 0.1);
      const std::vector<double> wide = widen(x);
      double magnitude = 0;
      for (int64_t i = begin; i < begin + size; ++i) magnitude += std::abs(wide[i]);
      const double squares = reference::sum_squares(&wide[begin], size);
      const double roundings = 2 * static_cast<double>(size) * 0x1p-53;
      EXPECT_NEAR(sum(x.data(), begin, begin + size), reference::sum(&wide[begin], size), magnitude * roundings);
      EXPECT_NEAR(sum_squares(x.data(), begin, begin + size), squares, squares * roundings);
    }
  }
}

TEST_P(Reduce, NothingIsZero) {
  EXPECT_EQ(sum(nullptr, 0, 0), 0);
  EXPECT_EQ(sum_squares(nullptr, 0, 0), 0);
}

TEST_P(Reduce, SumsThatFloatWouldLose) {
  const std::vector<float> huge(1000, 1e30f);
  EXPECT_NEAR(sum_squares(huge.data(), 0, 1000) / 1e63, 1, 1e-6);
  std::vector<float> small(1000, 1.0f);
  small[0] = 1e9f;
  EXPECT_EQ(sum(small.data(), 0, 1000), 1e9 + 999);
}

TEST_P(Reduce, NanIsNoticedWhereverItStands) {
  for (int64_t at : {0, 1, 14, 15, 16, 17, 31, 32, 64, 98, 99}) {
    std::vector<float> x(100, 1.0f);
    x[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(sum(x.data(), 0, 100))) << at;
    EXPECT_TRUE(std::isnan(sum_squares(x.data(), 0, 100))) << at;
  }
}

TEST_P(Reduce, WhatLiesOutsideTheRangeDoesNotCount) {
  std::vector<float> x(64, std::numeric_limits<float>::quiet_NaN());
  for (int64_t i = 11; i < 30; ++i) x[i] = 2;
  EXPECT_EQ(sum(x.data(), 11, 30), 38);
  EXPECT_EQ(sum_squares(x.data(), 11, 30), 76);
}

// A part is summed the same way wherever it lies in memory, so the same partition gives the same bits.
TEST_P(Reduce, BitsDoNotDependOnAlignment) {
  const Partition partition = partition_elements(30011);
  ASSERT_GT(partition.parts, 2);
  const std::vector<float> x = random_floats(30011, "long");
  for (int64_t shift : {1, 3, 8}) {
    std::vector<float> moved(shift, 0.0f);
    moved.insert(moved.end(), x.begin(), x.end());
    for (int64_t part = 0; part < partition.parts; ++part) {
      const int64_t begin = partition.begin(part), end = partition.end(part);
      EXPECT_EQ(sum(x.data(), begin, end), sum(moved.data(), begin + shift, end + shift));
      EXPECT_EQ(sum_squares(x.data(), begin, end), sum_squares(moved.data(), begin + shift, end + shift));
    }
  }
}

}  // namespace
}  // namespace siamese::kernels

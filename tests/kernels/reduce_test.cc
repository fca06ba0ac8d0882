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

// Any order of n float terms: n roundings of the sum of magnitudes at most, and that of bfloat16 where it is read.
TEST_P(Reduce, ColumnsAreAddedToWhatIsThere) {
  for (const int64_t cols : kWidths) {
    for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {2, 5}, {1, 5}, {3, 12}, {4, 4}}) {
      const std::vector<float> x = random_floats(12 * cols, "rows");
      const std::vector<float> before = random_floats(cols, "before");
      std::vector<Bfloat16> half(x.size());
      for (size_t i = 0; i < x.size(); ++i) half[i] = to_bfloat16(x[i]);
      std::vector<double> expected = widen(before), of_half = expected, bound(cols, 0);
      for (int64_t i = 0; i < cols; ++i) {
        double magnitude = std::abs(before[i]);
        for (int64_t row = begin; row < end; ++row) {
          expected[i] += x[row * cols + i];
          of_half[i] += to_float(half[row * cols + i]);
          magnitude += 1.01 * std::abs(x[row * cols + i]);
        }
        bound[i] = magnitude * static_cast<double>(end - begin + 1) * kUlp;
      }
      std::vector<float> sums = before, half_sums = before;
      add_column_sums(x.data(), sums.data(), begin, end, cols);
      add_column_sums(half.data(), half_sums.data(), begin, end, cols);
      expect_within(sums, expected, bound, "of floats");
      expect_within(half_sums, of_half, bound, "of bfloat16");
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

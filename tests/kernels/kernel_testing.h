// What the kernel tests share: every SIMD level as a test axis, random data, comparison with a bound per element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "siamese/base/random.h"
#include "siamese/kernels/bfloat16.h"
#include "siamese/kernels/past_cache.h"
#include "siamese/kernels/simd.h"

namespace siamese::kernels {

inline constexpr double kUlp = 0x1p-24;   // relative error of one rounding to float
inline constexpr double kSlack = 1.0001;  // products of roundings, and the double sums under them
inline constexpr float kUntouched = -12345.5f;

// Around the vector lengths of every SIMD level, and real widths.
inline const std::vector<int64_t> kWidths = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 257, 768, 1000};

// A suite that runs its tests at each SIMD level of this CPU.
class AtEverySimdLevel : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { force_simd_target(GetParam()); }
  void TearDown() override { force_simd_target(0); }
};

#define SIAMESE_AT_EVERY_SIMD_LEVEL(suite)                                   \
  using suite = ::siamese::kernels::AtEverySimdLevel;                        \
  INSTANTIATE_TEST_SUITE_P(Simd, suite, ::testing::ValuesIn(simd_targets()), \
                           [](const auto& test) { return simd_name(test.param); })

// Normal numbers around `center`, exact in float; each `name` is another sequence.
inline std::vector<float> random_floats(int64_t size, const std::string& name, double center = 0, double scale = 1) {
  std::vector<float> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(center + scale * random_normal(7, hash_text(name), i));
  }
  return values;
}

// Copies that begin `offset` floats past the begin of a cache line and stay where they are.
class LineArrays {
 public:
  explicit LineArrays(int64_t offset) : offset_(offset) {}

  float* add(const std::vector<float>& values) {
    auto& array = arrays_.emplace_back(values.size() + static_cast<size_t>(kLineFloats + offset_));
    float* begin = array.data();
    while (reinterpret_cast<uintptr_t>(begin) % (kLineFloats * sizeof(float)) != 0) ++begin;
    std::copy(values.begin(), values.end(), begin + offset_);
    return begin + offset_;
  }

 private:
  int64_t offset_;
  std::deque<std::vector<float>> arrays_;
};

using Halves = std::vector<Bfloat16>;

inline Halves rounded(const std::vector<float>& values) {
  Halves halves;
  for (const float value : values) halves.push_back(to_bfloat16(value));
  return halves;
}

inline std::vector<float> floats_of(const Halves& halves) {
  std::vector<float> values;
  for (const Bfloat16 half : halves) values.push_back(to_float(half));
  return values;
}

inline void expect_rounded(const Halves& actual, const std::vector<float>& exact, const std::string& what) {
  ASSERT_EQ(actual.size(), exact.size()) << what;
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(actual[i].bits, to_bfloat16(exact[i]).bits) << what << "[" << i << "] of " << exact[i];
  }
}

inline std::vector<double> widen(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// Every |actual - expected| within its bound; NaN is in no bound.
inline void expect_within(const std::vector<float>& actual, const std::vector<double>& expected,
                          const std::vector<double>& bound, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  ASSERT_EQ(actual.size(), bound.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    ASSERT_TRUE(error <= bound[i] * kSlack) << what << "[" << i << "] is " << actual[i] << ", expected " << expected[i]
                                            << ", off by " << error << " where " << bound[i] << " is allowed";
  }
}

// Every |actual - expected| within `tolerance` of the largest |expected| of the tensor (of `least`, if that is more).
inline void expect_close(const std::vector<float>& actual, const std::vector<double>& expected, double tolerance,
                         const std::string& what, double least = 0) {
  double largest = least;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  expect_within(actual, expected, std::vector<double>(expected.size(), tolerance * largest), what);
}

inline bool same_bits(const float* a, const float* b, int64_t size) {
  return std::memcmp(a, b, static_cast<size_t>(size) * sizeof(float)) == 0;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && same_bits(a.data(), b.data(), static_cast<int64_t>(a.size()));
}

inline std::string shape_text(int64_t rows, int64_t cols) { return std::to_string(rows) + "x" + std::to_string(cols); }

}  // namespace siamese::kernels

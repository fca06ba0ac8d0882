#include "siamese/nn/rotary.h"

#include <cmath>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

namespace siamese::nn {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::vector<double> plain(int64_t head_dim, double theta) {
  std::vector<double> all;
  for (int64_t i = 0; i < head_dim; i += 2) all.push_back(1 / std::pow(theta, double(i) / double(head_dim)));
  return all;
}

// By wavelengths, as Llama 3.1's own code has it.
TEST(RopeScaling, Llama3) {
  RopeScaling scaling;
  scaling.kind = RopeScalingKind::llama3;
  scaling.factor = 32;
  const auto scaled = rotary_frequencies(64, 500000, scaling);
  const auto before = plain(64, 500000);
  ASSERT_EQ(scaled.size(), 32U);
  int kept = 0, divided = 0;
  for (size_t j = 0; j < 32; ++j) {
    const double wavelength = 2 * kPi / before[j];
    double expected = before[j];
    if (wavelength > 8192.0 / 1) {
      expected = before[j] / 32;
      ++divided;
    } else if (wavelength >= 8192.0 / 4) {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      expected = (1 - smooth) * before[j] / 32 + smooth * before[j];
    } else {
      ++kept;
    }
    EXPECT_NEAR(scaled[j] / expected, 1, 1e-12) << j;
  }
  EXPECT_GT(kept, 5);  // every branch was there
  EXPECT_GT(divided, 5);
  EXPECT_LT(kept + divided, 32);
  EXPECT_EQ(rotary_magnitude(scaling), 1);
}

// With the mask of what is extrapolated, as the paper's code has it.
TEST(RopeScaling, Yarn) {
  for (const bool truncate : {true, false}) {
    RopeScaling scaling;
    scaling.kind = RopeScalingKind::yarn;
    scaling.factor = 8;
    scaling.context = 4096;
    scaling.truncate = truncate;
    const auto scaled = rotary_frequencies(128, 10000, scaling);
    const auto before = plain(128, 10000);
    double low = 128 * std::log(4096 / (32 * 2 * kPi)) / (2 * std::log(10000.0));
    double high = 128 * std::log(4096 / (1 * 2 * kPi)) / (2 * std::log(10000.0));
    if (truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    for (size_t j = 0; j < 64; ++j) {
      const double mask = 1 - std::min(1.0, std::max(0.0, (double(j) - low) / (high - low)));
      EXPECT_NEAR(scaled[j] / (before[j] / 8 * (1 - mask) + before[j] * mask), 1, 1e-12) << j;
    }
    EXPECT_EQ(scaled[0], before[0]);
    EXPECT_NEAR(rotary_magnitude(scaling), 0.1 * std::log(8.0) + 1, 1e-15);
    scaling.attention_factor = 1.5;
    EXPECT_EQ(rotary_magnitude(scaling), 1.5);
  }
}

TEST(RopeScaling, AFactorOfOneIsPlain) {
  for (const RopeScalingKind kind : {RopeScalingKind::none, RopeScalingKind::llama3, RopeScalingKind::yarn}) {
    RopeScaling scaling;
    scaling.kind = kind;
    scaling.factor = 1;
    const auto scaled = rotary_frequencies(16, 700, scaling);
    for (size_t j = 0; j < 8; ++j) EXPECT_NEAR(scaled[j] / plain(16, 700)[j], 1, 1e-14);
    EXPECT_EQ(rotary_magnitude(scaling), 1);
  }
}

// The tables hold them, within the first positions and past them.
TEST(Rotary, TablesAreScaled) {
  RopeScaling scaling;
  scaling.kind = RopeScalingKind::yarn;
  scaling.factor = 4;
  scaling.context = 64;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const Rotary rotary(10, 8, 700, options, scaling);
  const auto frequencies = rotary_frequencies(8, 700, scaling);
  const double magnitude = rotary_magnitude(scaling);
  const RotaryTables within = rotary.at(3, 2, options);
  const std::vector<int64_t> begins = {3, 100};
  const RotaryTables each = rotary.at_each(begins, 1, options);
  for (int64_t j = 0; j < 4; ++j) {
    const double frequency = frequencies[static_cast<size_t>(j)];
    EXPECT_NEAR(within.cos[1][0][j].item<double>(), magnitude * std::cos(4 * frequency), 1e-14);
    EXPECT_NEAR(each.sin[0][0][0][j].item<double>(), magnitude * std::sin(3 * frequency), 1e-14);
    EXPECT_NEAR(each.cos[1][0][0][j].item<double>(), magnitude * std::cos(100 * frequency), 1e-14);
  }
}

}  // namespace
}  // namespace siamese::nn

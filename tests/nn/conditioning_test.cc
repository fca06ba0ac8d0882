#include "siamese/nn/conditioning.h"

#include <cmath>

#include "tests/support/tensors.h"

#include "siamese/base/check.h"

namespace siamese::nn {
namespace conditioning_test {

TEST(Conditioning, TimestepFeaturesEqualTheirEquation) {
  const std::vector<double> steps = {0, 1, 7, 999, 0.25};
  const int64_t width = 10;
  const at::Tensor features = timestep_features(at::tensor(steps, at::kDouble), width, at::kDouble);
  ASSERT_EQ(features.sizes(), at::IntArrayRef({5, width}));
  for (int64_t b = 0; b < 5; ++b) {
    for (int64_t i = 0; i < width / 2; ++i) {
      const double frequency = std::exp(-std::log(10000.0) * static_cast<double>(i) / (static_cast<double>(width) / 2));
      const double angle = steps[static_cast<size_t>(b)] * frequency;
      EXPECT_NEAR(features[b][i].item<double>(), std::cos(angle), 1e-12) << b << " " << i;
      EXPECT_NEAR(features[b][width / 2 + i].item<double>(), std::sin(angle), 1e-12) << b << " " << i;
    }
  }
}

// An angle of 999 in float alone would be off by 3e-5; a number below 1 is rounded by at most 2^-25.
TEST(Conditioning, TimestepFeaturesAreRoundedOnce) {
  const at::Tensor t = at::arange(1000, at::kLong);
  const at::Tensor features = timestep_features(t, 8, at::kFloat);
  ASSERT_EQ(features.scalar_type(), at::kFloat);
  for (int64_t step = 0; step < 1000; ++step) {
    for (int64_t i = 0; i < 4; ++i) {
      const double angle = static_cast<double>(step) * std::pow(10000.0, -static_cast<double>(i) / 4);
      EXPECT_NEAR(features[step][i].item<double>(), std::cos(angle), 0x1.001p-25) << step << " " << i;
      EXPECT_NEAR(features[step][4 + i].item<double>(), std::sin(angle), 0x1.001p-25) << step << " " << i;
    }
  }
  testing::expect_same_bits(timestep_features(t.to(at::kFloat), 8, at::kFloat), features, "float steps");
}

TEST(Conditioning, PositionsEqualTheirEquation) {
  const int64_t width = 12;
  const int64_t grid = 3;
  const at::Tensor table = sincos_positions(width, grid, at::TensorOptions().dtype(at::kDouble));
  ASSERT_EQ(table.sizes(), at::IntArrayRef({9, width}));
  for (int64_t y = 0; y < grid; ++y) {
    for (int64_t x = 0; x < grid; ++x) {
      for (int64_t i = 0; i < 3; ++i) {
        const double w = std::pow(10000.0, -static_cast<double>(i) / 3);
        const at::Tensor token = table[y * grid + x];
        const auto column = static_cast<double>(x);
        const auto row = static_cast<double>(y);
        EXPECT_NEAR(token[i].item<double>(), std::sin(column * w), 1e-13);
        EXPECT_NEAR(token[3 + i].item<double>(), std::cos(column * w), 1e-13);
        EXPECT_NEAR(token[6 + i].item<double>(), std::sin(row * w), 1e-13);
        EXPECT_NEAR(token[9 + i].item<double>(), std::cos(row * w), 1e-13);
      }
    }
  }
  EXPECT_EQ(sincos_positions(8, 2, at::TensorOptions().dtype(at::kFloat)).scalar_type(), at::kFloat);
}

TEST(Conditioning, PositionsNeedAMultipleOfFour) {
  try {
    sincos_positions(6, 2, at::TensorOptions().dtype(at::kFloat));
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("multiple of 4, got 6"), std::string::npos) << error.what();
  }
}

TEST(Conditioning, TimestepEmbeddingEqualsItsEquation) {
  Parameters parameters(5, at::kDouble);
  const TimestepEmbedding embedding(Scope(parameters).child("time"), 6, 8);
  ASSERT_EQ(parameters.list().size(), 4U);
  const auto value = [&](const std::string& name) { return parameters.find("time." + name)->value.detach(); };
  EXPECT_EQ(testing::largest(value("in.bias")), 0);
  EXPECT_EQ(testing::largest(value("out.bias")), 0);
  for (const auto& parameter : parameters.list())
    parameter.value.detach().copy_(testing::randn(parameter.value.sizes(), 6));
  const std::vector<int64_t> steps = {3, 500};
  const at::Tensor y = embedding(at::tensor(steps, at::kLong));
  for (int64_t b = 0; b < 2; ++b) {
    std::vector<double> hidden(6);
    for (int64_t h = 0; h < 6; ++h) {
      double sum = value("in.bias")[h].item<double>();
      for (int64_t i = 0; i < 4; ++i) {
        const double angle =
            static_cast<double>(steps[static_cast<size_t>(b)]) * std::pow(10000.0, -static_cast<double>(i) / 4);
        sum += value("in.weight")[h][i].item<double>() * std::cos(angle);
        sum += value("in.weight")[h][4 + i].item<double>() * std::sin(angle);
      }
      hidden[static_cast<size_t>(h)] = sum / (1 + std::exp(-sum));
    }
    for (int64_t o = 0; o < 6; ++o) {
      double sum = value("out.bias")[o].item<double>();
      for (int64_t h = 0; h < 6; ++h) sum += value("out.weight")[o][h].item<double>() * hidden[static_cast<size_t>(h)];
      EXPECT_NEAR(y[b][o].item<double>(), sum, 1e-12);
    }
  }
}

TEST(Conditioning, TimestepEmbeddingStartsSmallAndUncut) {
  Parameters parameters(5);
  const TimestepEmbedding embedding(Scope(parameters), 384);
  for (const auto* name : {"in.weight", "out.weight"}) {
    const at::Tensor weight = parameters.find(name)->value.detach();
    EXPECT_NEAR(weight.std().item<double>(), 0.02, 2e-4) << name;
    EXPECT_GT(weight.abs().max().item<double>(), 0.07) << name;  // of 1e5 normals some lie past 3.5 deviations
  }
  EXPECT_EQ(parameters.find("in.weight")->value.sizes(), at::IntArrayRef({384, 256}));
  EXPECT_EQ(embedding(at::tensor({1, 2}, at::kLong)).sizes(), at::IntArrayRef({2, 384}));
}

}  // namespace conditioning_test
}  // namespace siamese::nn

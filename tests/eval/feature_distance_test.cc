#include "siamese/eval/feature_distance.h"

#include <array>
#include <cmath>
#include <limits>

#include "tests/support/tensors.h"

#include "siamese/base/check.h"

namespace siamese::eval {
namespace feature_distance_test {

using testing::randn;

// Features whose sample mean and covariance are exactly `mean` and diag(deviations^2), up to rounding: whitened
// normals.
at::Tensor exactly(const at::Tensor& mean, const at::Tensor& deviations, int64_t rows, uint64_t seed) {
  const at::Tensor x = randn({rows, mean.size(0)}, seed);
  const at::Tensor centred = x - x.mean(0);
  const auto [q, r] = at::linalg_qr(centred);  // q: orthonormal columns, still with mean 0
  return q * std::sqrt(static_cast<double>(rows - 1)) * deviations + mean;
}

TEST(FeatureDistance, EqualSetsAreAtZero) {
  const at::Tensor x = randn({50, 7}, 1) * 3 + 2;
  const FeatureDistance distance = feature_distance(x, x);
  EXPECT_EQ(distance.mean_part, 0);
  EXPECT_NEAR(distance.covariance_part, 0, 1e-10);
  EXPECT_EQ(distance.frechet, distance.mean_part + distance.covariance_part);
  // Fewer rows than columns: most eigenvalues are 0 but for rounding, some come out below it, and the roots of 1e-14
  // count 1e-7 each.
  const at::Tensor few = randn({5, 40}, 2);
  EXPECT_NEAR(feature_distance(few, few).frechet, 0, 1e-5);
}

TEST(FeatureDistance, DiagonalGaussiansHaveTheKnownDistance) {
  const at::Tensor mean_a = at::tensor({0.5, -1.0, 2.0}, at::kDouble),
                   mean_b = at::tensor({0.0, 1.0, 2.5}, at::kDouble);
  const at::Tensor std_a = at::tensor({1.0, 0.2, 3.0}, at::kDouble), std_b = at::tensor({0.4, 0.7, 2.0}, at::kDouble);
  const FeatureDistance distance = feature_distance(exactly(mean_a, std_a, 30, 3), exactly(mean_b, std_b, 45, 4));
  const double mean_part = 0.25 + 4 + 0.25;
  const double covariance_part = 0.36 + 0.25 + 1;  // (s_a - s_b)^2
  EXPECT_NEAR(distance.mean_part, mean_part, 1e-12);
  EXPECT_NEAR(distance.covariance_part, covariance_part, 1e-12);
  EXPECT_NEAR(distance.frechet, mean_part + covariance_part, 1e-12);
}

// Two dimensions with correlations, where the roots do not commute: the trace of the root of a 2x2 matrix of
// determinant D and trace T is sqrt(T + 2 sqrt(D)), and S_a^{1/2} S_b S_a^{1/2} has those of S_a S_b.
TEST(FeatureDistance, CorrelatedGaussiansHaveTheKnownDistance) {
  const at::Tensor a = randn({20, 2}, 5).matmul(at::tensor({1.0, 0.8, 0.0, 0.5}, at::kDouble).view({2, 2}));
  const at::Tensor b = randn({30, 2}, 6).matmul(at::tensor({0.3, -0.9, 0.2, 1.5}, at::kDouble).view({2, 2}));
  const auto covariance = [](const at::Tensor& x) {
    std::array<double, 4> s{};
    const auto rows = static_cast<double>(x.size(0));
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        double mean_i = 0, mean_j = 0, sum = 0;
        for (int64_t r = 0; r < x.size(0); ++r) mean_i += x[r][i].item<double>() / rows;
        for (int64_t r = 0; r < x.size(0); ++r) mean_j += x[r][j].item<double>() / rows;
        for (int64_t r = 0; r < x.size(0); ++r) {
          sum += (x[r][i].item<double>() - mean_i) * (x[r][j].item<double>() - mean_j);
        }
        s[static_cast<size_t>(2 * i + j)] = sum / (rows - 1);
      }
    }
    return s;
  };
  const auto s = covariance(a), t = covariance(b);
  const double determinant = (s[0] * s[3] - s[1] * s[2]) * (t[0] * t[3] - t[1] * t[2]);
  const double trace = s[0] * t[0] + s[1] * t[2] + s[2] * t[1] + s[3] * t[3];
  const double expected = s[0] + s[3] + t[0] + t[3] - 2 * std::sqrt(trace + 2 * std::sqrt(determinant));
  EXPECT_NEAR(feature_distance(a, b).covariance_part, expected, 1e-11);
}

TEST(FeatureDistance, NeitherOrderMatters) {
  const at::Tensor a = randn({40, 6}, 7, at::kFloat), b = randn({33, 6}, 8, at::kFloat) * 2 + 1;
  const double distance = feature_distance(a, b).frechet;
  EXPECT_GT(distance, 1);
  EXPECT_NEAR(feature_distance(b, a).frechet, distance, 1e-11);
  EXPECT_NEAR(feature_distance(a.flip(0), b.roll(5, 0)).frechet, distance, 1e-11);
}

TEST(FeatureDistance, RefusesWhatHasNoCovariance) {
  const at::Tensor good = randn({4, 3}, 9);
  EXPECT_THROW(feature_distance(good, good.narrow(0, 0, 1)), DataError);
  EXPECT_THROW(feature_distance(good.narrow(0, 0, 0), good), DataError);
  at::Tensor bad = good.clone();
  bad[2][1] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(feature_distance(bad, good), DataError);
  bad[2][1] = std::nan("");
  try {
    feature_distance(good, bad);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("second set"), std::string::npos) << error.what();
  }
}

}  // namespace feature_distance_test
}  // namespace siamese::eval

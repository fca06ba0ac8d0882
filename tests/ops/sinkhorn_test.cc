#include "siamese/ops/sinkhorn.h"

#include "tests/support/tensors.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace {

using testing::randn;

constexpr int64_t kRounds = 20;

double row_error(const at::Tensor& m) { return (m.sum(-1) - 1).abs().max().item<double>(); }
double column_error(const at::Tensor& m) { return (m.sum(-2) - 1).abs().max().item<double>(); }

at::Tensor logits(double std, uint64_t seed) { return (std * randn({64, 4, 4}, seed)).to(at::kFloat); }

TEST(Sinkhorn, RowsAlwaysSumToOneAndColumnsForOrdinaryLogits) {
  for (const double std : {0.0, 0.1, 0.5}) {
    const at::Tensor m = sinkhorn(logits(std, 1), kRounds);
    EXPECT_LT(row_error(m), 1e-5) << std;
    EXPECT_LT(column_error(m), 1e-5) << std;
    EXPECT_GE(m.min().item<double>(), 0);
  }
  const at::Tensor initial = sinkhorn(6 * at::eye(4) - 3, kRounds);  // mHC's default start
  EXPECT_LT(row_error(initial), 1e-5);
  EXPECT_LT(column_error(initial), 1e-5);
  EXPECT_NEAR(initial[0][0].item<double>(), 0.9926, 1e-4);
  EXPECT_NEAR(initial[0][1].item<double>(), 0.00246, 1e-5);
}

TEST(Sinkhorn, ExtremeLogitsStayFiniteForwardAndBackward) {
  for (const double std : {5.0, 60.0}) {
    at::Tensor x = std < 60 ? logits(std, 2) : (60 * logits(1, 2).sign());
    x.set_requires_grad(true);
    const at::Tensor m = sinkhorn(x, kRounds);
    EXPECT_TRUE(m.isfinite().all().item<bool>());
    EXPECT_LT(row_error(m), 1e-5);
    RecordProperty("column_error", std::to_string(column_error(m)));  // only reported: twenty rounds need not suffice
    const auto gradient = testing::gradients((m * m).sum(), {x});
    EXPECT_TRUE(gradient[0].isfinite().all().item<bool>());
  }
}

TEST(Sinkhorn, EqualsTheMatrixFormInDouble) {
  at::Tensor x = randn({5, 3, 3}, 4).set_requires_grad(true);
  at::Tensor plain = at::exp(x);
  for (int64_t round = 0; round < kRounds; ++round) {
    plain = plain / plain.sum(-2, true);
    plain = plain / plain.sum(-1, true);
  }
  const at::Tensor weights = randn({5, 3, 3}, 5);
  const at::Tensor m = sinkhorn(x, kRounds);
  testing::expect_relative(m, plain, 1e-13, "forward");
  testing::expect_relative(testing::gradients((m * weights).sum(), {x})[0],
                           testing::gradients((plain * weights).sum(), {x})[0], 1e-12, "gradient");
}

TEST(Sinkhorn, FusedEqualsPlainForwardAndGradient) {
  const ModeGuard guard(Mode::fused);
  for (const int64_t n : {1, 2, 3, 4, 5, 16}) {
    for (const int64_t iterations : {1, 3, 20}) {
      const at::Tensor single = testing::leaf(randn({3, 7, n, n}, 6, at::kFloat));
      const at::Tensor exact = testing::leaf(single.detach().to(at::kDouble));
      const at::Tensor got = sinkhorn(single.transpose(-1, -2), iterations);
      const at::Tensor wanted = plain::sinkhorn(exact.transpose(-1, -2), iterations);
      const std::string what = std::to_string(n) + ", " + std::to_string(iterations) + " rounds";
      testing::expect_relative(got, wanted, 3e-6, what);
      testing::expect_relative(testing::gradients(got, {single})[0], testing::gradients(wanted, {exact})[0], 1e-5,
                               what + " gradient");  // forty roundings of logarithms
    }
  }
}

TEST(Sinkhorn, SameBitsAtAnyThreadCount) {
  const ModeGuard guard(Mode::fused);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    const at::Tensor x = testing::leaf(randn({1003, 4, 4}, 7, at::kFloat));
    const at::Tensor m = sinkhorn(x, kRounds);
    results.push_back({m, testing::gradients(m, {x})[0]});
  }
  at::set_num_threads(before);
  for (const auto& result : results) {
    testing::expect_same_bits(result[0], results[0][0], "P");
    testing::expect_same_bits(result[1], results[0][1], "gradient");
  }
}

}  // namespace
}  // namespace siamese::ops

#include "siamese/ops/sinkhorn.h"

#include "tests/support/tensors.h"

#include <ATen/ATen.h>

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
  testing::expect_close(m, plain, 1e-13, "forward");
  testing::expect_close(testing::gradients((m * weights).sum(), {x})[0],
                        testing::gradients((plain * weights).sum(), {x})[0], 1e-12, "gradient");
}

}  // namespace
}  // namespace siamese::ops

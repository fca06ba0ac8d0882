#include "siamese/ops/rope.h"

#include "tests/support/tensors.h"

#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace {

// Each pair (j, j + half) of a head is a point rotated by its angle.
TEST(Rope, RotatesEachPairByItsAngle) {
  const int64_t tokens = 5;
  const int64_t heads = 2;
  const int64_t head_dim = 6;
  const at::Tensor x = testing::randn({1, tokens, heads, head_dim}, 1);
  const at::Tensor angles = testing::randn({tokens, 1, head_dim / 2}, 2);
  const at::Tensor y = rope(x, angles.cos(), angles.sin());
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t j = 0; j < head_dim / 2; ++j) {
        const double a = x[0][t][h][j].item<double>();
        const double b = x[0][t][h][j + head_dim / 2].item<double>();
        const double angle = angles[t][0][j].item<double>();
        EXPECT_NEAR(y[0][t][h][j].item<double>(), a * std::cos(angle) - b * std::sin(angle), 1e-12);
        EXPECT_NEAR(y[0][t][h][j + head_dim / 2].item<double>(), b * std::cos(angle) + a * std::sin(angle), 1e-12);
      }
    }
  }
}

TEST(Rope, FusedEqualsPlainForwardAndGradient) {
  const ModeGuard fused(Mode::fused);
  for (const int64_t half : {1, 15, 16, 17, 129}) {
    const at::Tensor exact = testing::leaf(testing::randn({2, 5, 3, 2 * half}, 1).to(at::kFloat).to(at::kDouble));
    const at::Tensor single = testing::leaf(exact.to(at::kFloat));
    const at::Tensor angles = testing::randn({5, 1, half}, 2);
    const at::Tensor wanted = plain::rope(exact, angles.cos(), angles.sin());
    const at::Tensor got = ops::rope(single, angles.cos().to(at::kFloat), angles.sin().to(at::kFloat));
    testing::expect_relative(got, wanted, 1e-6, "forward");
    testing::expect_relative(testing::gradients(got, {single})[0], testing::gradients(wanted, {exact})[0], 1e-6,
                             "back");
  }
}

}  // namespace
}  // namespace siamese::ops

#include "siamese/ops/mode.h"

#include "tests/support/tensors.h"

#include "siamese/base/check.h"
#include "siamese/ops/norm.h"

namespace siamese::ops {
namespace {

TEST(Mode, ChoosesTheKernelByDtypeAndSwitch) {
  const at::Tensor single = at::ones({2}, at::kFloat);
  const at::Tensor exact = at::ones({2}, at::kDouble);
  EXPECT_TRUE(use_fused("op", {single, at::Tensor()}));
  EXPECT_FALSE(use_fused("op", {single, exact}));
  const ModeGuard plain(Mode::plain);
  EXPECT_FALSE(use_fused("op", {single}));
}

TEST(Mode, FusedRefusesWhatHasNoKernel) {
  const ModeGuard fused(Mode::fused);
  EXPECT_TRUE(use_fused("op", {at::ones({2}, at::kFloat)}));
  EXPECT_THROW(rms_norm(at::ones({2, 3}, at::kDouble), {}, 1e-5), UsageError);
}

TEST(Mode, PlainReallyRunsThePlainExpression) {
  const at::Tensor x = testing::randn({3, 33}, 1, at::kFloat);
  const ModeGuard plain_mode(Mode::plain);
  testing::expect_same_bits(rms_norm(x, {}, 1e-5), plain::rms_norm(x, {}, 1e-5), "plain");
}

}  // namespace
}  // namespace siamese::ops

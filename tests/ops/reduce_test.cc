#include "siamese/ops/reduce.h"

#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace {

using testing::leaf;
using testing::randn;

TEST(Reduce, SumsEqualDoubleArithmetic) {
  for (const int64_t size : {1, 33, 8191, 100003}) {
    const at::Tensor x = randn({size}, 3, at::kFloat);
    const at::Tensor exact = x.to(at::kDouble);
    EXPECT_NEAR(fixed_sum(x).item<double>(), exact.sum().item<double>(), 1e-4);
    EXPECT_NEAR(sum_squares(x), exact.square().sum().item<double>(), 1e-9 * static_cast<double>(size));
    EXPECT_NEAR(plain::sum_squares_of({x}).item<double>(), exact.square().sum().item<double>(),
                1e-9 * static_cast<double>(size));
    EXPECT_NEAR(rms(x), std::sqrt(exact.square().mean().item<double>()), 1e-9);
  }
  EXPECT_EQ(sum_squares(std::vector<at::Tensor>{at::ones({3}), at::Tensor(), at::ones({2, 2})}), 7);
}

TEST(Reduce, SameBitsAtAnyThreadCountFusedAndPlain) {
  const at::Tensor x = randn({300007}, 4, at::kFloat);
  const int before = at::get_num_threads();
  for (const Mode mode : {Mode::fused, Mode::plain}) {
    const ModeGuard guard(mode);
    at::set_num_threads(1);
    const at::Tensor one = fixed_sum(x);
    const double squares = sum_squares(x);
    at::set_num_threads(3);
    testing::expect_same_bits(fixed_sum(x), one, "sum");
    EXPECT_EQ(sum_squares(x), squares);
  }
  at::set_num_threads(before);
}

TEST(Reduce, GradientIsOneEverywhere) {
  const at::Tensor x = leaf(randn({5, 7}, 5, at::kFloat));
  (fixed_sum(x) * 3).backward();
  testing::expect_same_bits(x.grad(), at::full({5, 7}, 3.0f), "gradient");
}

// Added up in bfloat16, parts of 16384 would stop growing at 2^22.
TEST(Reduce, HalfTypesAreSummedInFloat) {
  constexpr int64_t kCount = 300 * 16384;
  const at::Tensor ones = at::ones({kCount}, at::kBFloat16);
  EXPECT_EQ(fixed_sum(ones).scalar_type(), at::kBFloat16);
  EXPECT_EQ(fixed_sum(ones).item<double>(), kCount);
  EXPECT_EQ(sum_squares(ones), kCount);
}

TEST(Reduce, OfNoTensors) { EXPECT_EQ(sum_squares(std::vector<at::Tensor>{at::Tensor()}), 0); }

}  // namespace
}  // namespace siamese::ops

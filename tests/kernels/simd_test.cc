#include "siamese/kernels/simd.h"

#include <gtest/gtest.h>

namespace siamese::kernels {
namespace {

TEST(Simd, LevelIsTheBestTarget) {
  const std::vector<int64_t> targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(simd_level(), simd_name(targets.front()));
  for (int64_t target : targets) EXPECT_NE(simd_name(target), "Unknown");
}

TEST(Simd, ForcingATargetIsSeenByTheNextCall) {
  const std::vector<int64_t> targets = simd_targets();
#if defined(__x86_64__)  // on 64-bit Arm NEON is in every CPU, and the only level
  EXPECT_GE(targets.size(), 2u) << "the tests at every SIMD level would test one";
#endif
  for (int64_t target : targets) {
    force_simd_target(target);
    EXPECT_EQ(simd_level(), simd_name(target));
    EXPECT_EQ(simd_targets(), targets);
  }
  force_simd_target(0);
  EXPECT_EQ(simd_level(), simd_name(targets.front()));
}

TEST(SimdDeathTest, ATargetThisCpuLacksIsABug) { EXPECT_DEATH(force_simd_target(3), "targets"); }

}  // namespace
}  // namespace siamese::kernels

#include "siamese/kernels/simd.h"

#include <algorithm>

#include "siamese/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/simd.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

int64_t target_in_use() { return HWY_TARGET; }

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(target_in_use);

std::string simd_level() { return simd_name(HWY_DYNAMIC_DISPATCH(target_in_use)()); }

std::vector<int64_t> simd_targets() {
  // Asked once, before anything is forced: Highway's own list shrinks to the forced target.
  static const std::vector<int64_t> targets = [] {
    std::vector<int64_t> found = hwy::SupportedAndGeneratedTargets();
    // The scalar fallback runs anywhere, but the library may name it otherwise than our compiler does (SCALAR, EMU128).
    const int64_t fallback = HWY_TARGETS & (HWY_SCALAR | HWY_EMU128);
    if (fallback != 0 && std::find(found.begin(), found.end(), fallback) == found.end()) found.push_back(fallback);
    return found;
  }();
  return targets;
}

std::string simd_name(int64_t target) { return hwy::TargetName(target); }

void force_simd_target(int64_t target) {
  const std::vector<int64_t> targets = simd_targets();
  SIAMESE_INVARIANT(target == 0 || std::find(targets.begin(), targets.end(), target) != targets.end());
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

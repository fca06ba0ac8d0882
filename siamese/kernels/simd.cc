#include "siamese/kernels/simd.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

bool has_bfloat16_products() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
#else
  return false;
#endif
}

bool has_amx() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1U << 22)) != 0;  // AMX-BF16
#else
  return false;
#endif
}

bool prefers_mkl() {
#if defined(__x86_64__)
  static const bool prefers = __builtin_cpu_supports("avx512f") == 0;
  return prefers;
#else
  return false;
#endif
}

void force_simd_target(int64_t target) {
  const std::vector<int64_t> targets = simd_targets();
  SIAMESE_INVARIANT(target == 0 || std::find(targets.begin(), targets.end(), target) != targets.end());
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE

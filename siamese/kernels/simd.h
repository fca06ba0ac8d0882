// Which instructions the kernels use. Every kernel is compiled for several SIMD targets and picks the best one
// this CPU has at run time; a target is a Highway bit (HWY_AVX2, ...), a lower bit is a better target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace siamese::kernels {

// The name of the target in use, such as "AVX3" or "AVX2".
std::string simd_level();

// The targets that are compiled in and that this CPU supports, best first; forcing one does not change the list.
std::vector<int64_t> simd_targets();

// The name of one target.
std::string simd_name(int64_t target);

// Whether this CPU multiplies bfloat16 (AVX512-BF16): about twice the products of float. AMX: a unit for them, which
// only libraries below LibTorch use.
bool has_bfloat16_products();
bool has_amx();

// Whether MKL's large products of floats are faster than oneDNN's: on x86 without AVX-512 (docs/performance.md).
bool prefers_mkl();

// For tests: makes every kernel use this target (one of simd_targets()), and the best one again after 0.
// Not for use while a kernel runs in another thread.
void force_simd_target(int64_t target);

}  // namespace siamese::kernels

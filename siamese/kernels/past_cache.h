// Non-temporal stores: results that nobody reads soon may go to memory past the caches, where a plain store would first
// fetch what it overwrites. Only whole cache lines can.
#pragma once

#include <cstdint>

namespace siamese::kernels {

inline constexpr int64_t kLineFloats = 16;  // a cache line

// Whether rows of `cols` floats, one after the other from `rows` on, consist of whole cache lines.
inline bool can_store_past_cache(const float* rows, int64_t cols) {
  return cols % kLineFloats == 0 && reinterpret_cast<uintptr_t>(rows) % (kLineFloats * sizeof(float)) == 0;
}

}  // namespace siamese::kernels

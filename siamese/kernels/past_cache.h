// Non-temporal stores: results that nobody reads soon may go to memory past the caches, where a plain store would first
// fetch what it overwrites. Only whole cache lines can.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

inline constexpr int64_t kLineFloats = 16;  // a cache line

// Whether rows of `cols` floats, one after the other from `rows` on, consist of whole cache lines.
inline bool can_store_past_cache(const float* rows, int64_t cols) {
  return cols % kLineFloats == 0 && reinterpret_cast<uintptr_t>(rows) % (kLineFloats * sizeof(float)) == 0;
}

// A vector of bfloat16 is half a line: they go the usual way.
inline bool can_store_past_cache(const Bfloat16*, int64_t) { return false; }

}  // namespace siamese::kernels

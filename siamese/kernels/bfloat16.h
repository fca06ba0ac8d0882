// The upper half of a float: its sign, its exponent and 7 of its 23 digits. Kernels keep it in memory only, at half the
// bytes; they compute in float. Rounding is to the nearest, ties to even; a NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

namespace siamese::kernels {

struct Bfloat16 {
  uint16_t bits = 0;
};

inline float to_float(Bfloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline float to_float(float x) { return x; }

inline Bfloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace siamese::kernels

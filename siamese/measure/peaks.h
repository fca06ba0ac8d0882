// What this machine can do at best, for other kernels to be measured against: multiply-adds in registers, and plain
// loops over memory.
#pragma once

#include <cstdint>

namespace siamese::measure {

// `rounds` rounds of independent multiply-adds that never leave the registers. Returns the floating-point operations
// done (a multiply-add is two); `sink` gets a finite number that depends on all of them.
double multiply_add_rounds(int64_t rounds, float* sink);

// The same of pairs of bfloat16, four operations a lane; 0 where this CPU has no such instruction.
double multiply_add_pair_rounds(int64_t rounds, float* sink);

inline constexpr int kMaxReads = 6;
inline constexpr int kMaxWrites = 4;

// v = in[0][i], then v = v / 2 + in[r][i] for each further array (without any: 1); v is stored to every out[w][i].
// Two reads and one write are STREAM's triad. An out may be one of the in. Returns the sum of v when nothing is written
// (so that nothing is left out), else 0.
float memory_loop(const float* const* in, int reads, float* const* out, int writes, int64_t begin, int64_t end);

}  // namespace siamese::measure

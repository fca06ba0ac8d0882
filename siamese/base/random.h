// Counter-based randomness (Philox 4x32-10, Salmon et al. 2011): a number is a pure function of
// (seed, stream, index), so it is the same at any thread count, after a resume, and in any order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace siamese {

// Four independent 32-bit words for (seed, stream, index).
std::array<uint32_t, 4> random_words(uint64_t seed, uint64_t stream, uint64_t index);

// One 64-bit word for (seed, stream, index).
uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t index);

// Uniform in (0, 1), never 0 or 1.
double random_uniform(uint64_t seed, uint64_t stream, uint64_t index);

// Standard normal (Box-Muller) cut at +-`cut` by redrawing; cut <= 0 means uncut.
double random_normal(uint64_t seed, uint64_t stream, uint64_t index, double cut = 0);

// Uniform in [0, bound) for bound > 0, without modulo bias worth naming (64-bit multiply-shift).
uint64_t random_below(uint64_t bound, uint64_t seed, uint64_t stream, uint64_t index);

// A stable 64-bit hash of text (FNV-1a, finalised): names of random streams, split keys.
uint64_t hash_text(std::string_view text);

// A stable bijective mix of 64 bits (splitmix64 finaliser).
uint64_t mix_bits(uint64_t value);

// A keyed permutation of [0, size): a shuffle that needs no memory and can be entered anywhere.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed, uint64_t stream);
  uint64_t operator()(uint64_t index) const;
  uint64_t size() const { return size_; }

 private:
  uint64_t size_;
  uint64_t seed_;
  uint64_t stream_;
  int half_bits_;
};

}  // namespace siamese

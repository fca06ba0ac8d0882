#include "siamese/base/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "siamese/base/check.h"

namespace siamese {
namespace {

constexpr double kTwoToMinus53 = 1.0 / 9007199254740992.0;

double to_uniform(uint32_t low, uint32_t high) {
  const uint64_t bits = ((static_cast<uint64_t>(high) << 32) | low) >> 11;
  return (static_cast<double>(bits) + 0.5) * kTwoToMinus53;
}

}  // namespace

std::array<uint32_t, 4> random_words(uint64_t seed, uint64_t stream, uint64_t index) {
  std::array<uint32_t, 4> counter = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                     static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = 0xD2511F53ULL * counter[0];
    const uint64_t product1 = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t index) {
  const auto words = random_words(seed, stream, index);
  return (static_cast<uint64_t>(words[1]) << 32) | words[0];
}

double random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  const auto words = random_words(seed, stream, index);
  return to_uniform(words[0], words[1]);
}

double random_normal(uint64_t seed, uint64_t stream, uint64_t index, double cut) {
  // A redraw changes the key, never the index: neighbours stay independent.
  for (uint64_t attempt = 0;; ++attempt) {
    const auto words = random_words(attempt == 0 ? seed : mix_bits(seed + attempt), stream, index);
    const double radius = std::sqrt(-2.0 * std::log(to_uniform(words[0], words[1])));
    const double angle = 2.0 * std::numbers::pi * to_uniform(words[2], words[3]);
    for (const double value : {radius * std::cos(angle), radius * std::sin(angle)}) {
      if (cut <= 0 || std::abs(value) <= cut) return value;
    }
  }
}

uint64_t random_below(uint64_t bound, uint64_t seed, uint64_t stream, uint64_t index) {
  SIAMESE_INVARIANT(bound > 0);
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(random_u64(seed, stream, index)) * bound) >> 64);
}

uint64_t mix_bits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mix_bits(hash);
}

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t stream) : size_(size), seed_(seed), stream_(stream) {
  SIAMESE_INVARIANT(size > 0 && size < (1ULL << 62));
  half_bits_ = (std::bit_width(size - 1) + 1) / 2;
  if (half_bits_ == 0) half_bits_ = 1;
}

// A Feistel network over 2 * half_bits_ bits, walked until it falls inside [0, size).
uint64_t Permutation::operator()(uint64_t index) const {
  SIAMESE_INVARIANT(index < size_);
  const uint64_t mask = (1ULL << half_bits_) - 1;
  do {
    uint64_t left = index >> half_bits_;
    uint64_t right = index & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t next = left ^ (random_u64(seed_, stream_ + round, right) & mask);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

}  // namespace siamese

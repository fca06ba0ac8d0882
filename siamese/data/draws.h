// A sequence of draws that is a pure function of (seed, stream): what one image or one batch needs, in order.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "siamese/base/random.h"

namespace siamese::data {

class Draws {
 public:
  Draws(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint32_t word() {
    if (used_ == words_.size()) {
      words_ = random_words(seed_, stream_, index_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  // Uniform in [0, bound).
  int below(int bound) {
    return static_cast<int>((static_cast<uint64_t>(word()) * static_cast<uint64_t>(bound)) >> 32);
  }
  // Uniform in (0, 1).
  double uniform() { return (static_cast<double>(word()) + 0.5) / 4294967296.0; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return uniform() < probability; }
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t index_ = 0;
  std::array<uint32_t, 4> words_{};
  size_t used_ = 4;
};

}  // namespace siamese::data

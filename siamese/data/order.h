// The order in which a set of samples is gone through, epoch after epoch.
#pragma once

#include <cstdint>

#include "siamese/base/random.h"

namespace siamese::data {

// `plain`: as written, each epoch the same. `shuffled`: a permutation of all samples keyed by (seed, epoch).
enum class Order { plain, shuffled };

class IndexOrder {
 public:
  // count 0 = endless: position = index.
  IndexOrder(int64_t count, Order order, uint64_t seed)
      : count_(static_cast<uint64_t>(count)), order_(order), seed_(seed) {}

  uint64_t operator()(uint64_t position) const {
    if (count_ == 0) return position;
    if (order_ == Order::plain) return position % count_;
    constexpr uint64_t kStreamsPerEpoch = 16;  // a permutation uses a few streams from its own on
    return Permutation(count_, seed_, position / count_ * kStreamsPerEpoch)(position % count_);
  }

 private:
  uint64_t count_;
  Order order_;
  uint64_t seed_;
};

}  // namespace siamese::data

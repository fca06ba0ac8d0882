// (left, right) -> what they merge into and when: an open-addressed table, because the inner loop of BPE asks it about
// every pair of neighbours.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace siamese::text {

struct Merge {
  uint32_t rank = kNever;  // the lowest of a word merges first
  uint32_t id = 0;
  static constexpr uint32_t kNever = UINT32_MAX;
};

class MergeTable {
 public:
  explicit MergeTable(size_t merges = 0) : slots_(std::bit_ceil(2 * merges + 2)), mask_(slots_.size() - 1) {}

  // Of two equal pairs the later one stays. At most as many as the table was made for.
  void put(uint32_t left, uint32_t right, Merge merge) {
    const uint64_t key = key_of(left, right);
    size_t at = place(key);
    while (slots_[at].merge.rank != Merge::kNever && slots_[at].key != key) at = (at + 1) & mask_;
    slots_[at] = {key, merge};
  }

  Merge find(uint32_t left, uint32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = place(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key || slots_[at].merge.rank == Merge::kNever) return slots_[at].merge;
    }
  }

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Merge merge;
  };
  static uint64_t key_of(uint32_t left, uint32_t right) { return (uint64_t{left} << 32) | right; }
  size_t place(uint64_t key) const { return static_cast<size_t>((key * 0x9E3779B97F4A7C15U) >> 32) & mask_; }

  std::vector<Slot> slots_;
  size_t mask_;
};

}  // namespace siamese::text

// Words that were encoded before, and their ids. A text repeats most of its words, so this is what decides the speed of
// encoding. A slot holds a word of at most 32 bytes as four numbers, which compare faster than bytes; a new word simply
// takes the place of an older one with the same hash. One thread's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace siamese::text {

class WordCache {
 public:
  static constexpr size_t kLongest = 32;

  // A word as numbers: two words are equal if and only if these are.
  struct Key {
    uint64_t parts[4];
    uint32_t length;

    explicit Key(std::string_view word) : parts{}, length(static_cast<uint32_t>(word.size())) {
      const char* const first = word.data();
      const char* const end = first + word.size();
      if (length >= 16) {
        parts[0] = load<uint64_t>(first);
        parts[1] = load<uint64_t>(first + 8);
        parts[2] = load<uint64_t>(end - 16);
        parts[3] = load<uint64_t>(end - 8);
      } else if (length >= 8) {
        parts[0] = load<uint64_t>(first);
        parts[1] = load<uint64_t>(end - 8);
      } else if (length >= 4) {
        parts[0] = (uint64_t{load<uint32_t>(first)} << 32) | load<uint32_t>(end - 4);
      } else {
        for (const char* at = first; at < end; ++at) parts[0] = (parts[0] << 8) | static_cast<unsigned char>(*at);
      }
    }

    uint64_t hash() const {
      uint64_t value = (parts[0] ^ length) * 0x9E3779B97F4A7C15U;
      value ^= value >> 32;
      value = (value ^ parts[1]) * 0xD6E8FEB86659FD93U;
      if (length > 16) value = ((value ^ (value >> 32) ^ parts[2]) + parts[3]) * 0xD6E8FEB86659FD93U;
      return value ^ (value >> 32);
    }

   private:
    template <class T>
    static T load(const char* at) {
      T value;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
  };

  WordCache() : slots_(kSlots) {}

  // Appends the ids of the word; false when it is not here.
  bool find(const Key& key, std::vector<uint32_t>& out) const {
    const Slot& slot = slots_[key.hash() & (kSlots - 1)];
    if (slot.length != key.length || std::memcmp(slot.parts, key.parts, sizeof slot.parts) != 0) return false;
    const uint32_t* const ids = slot.count <= kInside ? slot.ids : more_.data() + slot.ids[0];
    out.insert(out.end(), ids, ids + slot.count);
    return true;
  }

  void put(const Key& key, const uint32_t* ids, size_t count) {
    if (count > kInside && more_.size() > kMost) {
      slots_.assign(kSlots, Slot{});
      more_.clear();
    }
    Slot& slot = slots_[key.hash() & (kSlots - 1)];
    std::memcpy(slot.parts, key.parts, sizeof slot.parts);
    slot.length = static_cast<uint16_t>(key.length);
    slot.count = static_cast<uint16_t>(count);
    if (count <= kInside) {
      std::copy_n(ids, count, slot.ids);  // ids may be null where there are none
    } else {
      slot.ids[0] = static_cast<uint32_t>(more_.size());
      more_.insert(more_.end(), ids, ids + count);
    }
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 15;
  static constexpr size_t kInside = 3;
  static constexpr size_t kMost = size_t{1} << 20;  // ids outside the slots

  struct Slot {
    uint64_t parts[4] = {};
    uint16_t length = 0;  // 0: empty
    uint16_t count = 0;
    uint32_t ids[kInside] = {};
  };

  std::vector<Slot> slots_;
  std::vector<uint32_t> more_;
};

}  // namespace siamese::text

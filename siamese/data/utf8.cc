#include "siamese/data/utf8.h"

#include <cstdint>
#include <cstring>

namespace siamese::data {
namespace {

// Length of the valid character that starts `bytes` (1 to 4), or 0.
size_t character_length(std::span<const std::byte> bytes) {
  const auto byte_at = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
  const uint32_t lead = byte_at(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(i) & 0xC0) != 0x80) return 0;
  }
  const uint32_t second = byte_at(1);
  if (lead == 0xE0 && second < 0xA0) return 0;   // could be shorter
  if (lead == 0xED && second >= 0xA0) return 0;  // surrogate
  if (lead == 0xF0 && second < 0x90) return 0;   // could be shorter
  if (lead == 0xF4 && second >= 0x90) return 0;  // past U+10FFFF
  return length;
}

}  // namespace

std::optional<size_t> first_invalid_utf8(std::span<const std::byte> bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    uint64_t eight = 0;
    if (bytes.size() - at >= sizeof eight) {  // most text is mostly ASCII
      std::memcpy(&eight, bytes.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080ULL) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t length = character_length(bytes.subspan(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

}  // namespace siamese::data

#include "siamese/config/text.h"

#include <algorithm>
#include <cstdint>

#include "siamese/base/check.h"

namespace siamese::config {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the UTF-8 character that `text` begins with, 0 when it is none: too long a form, a surrogate, past U+10FFFF.
size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t bytes = first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF8 ? 4 : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  uint32_t code = first & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!continues(text[i])) return 0;
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : bytes;
}

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F; }

}  // namespace

void check_text(std::string_view text, const std::string& source) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t bytes = character_bytes(text.substr(at));
    if (bytes == 0 || is_control(static_cast<unsigned char>(text[at]))) {
      throw UsageError(source + ": line " +
                       std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')) +
                       ": expected UTF-8 text, got byte " + std::to_string(static_cast<unsigned char>(text[at])));
    }
    at += bytes;
  }
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 200;
  if (text.size() <= kLongest) return std::string(text);
  size_t end = kLongest;
  while (end > 0 && continues(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace siamese::config

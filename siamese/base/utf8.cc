#include "siamese/base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace siamese {
namespace {

uint32_t byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// Of a valid character of so many bytes.
uint32_t code_point(std::string_view character) {
  if (character.size() == 1) return byte_at(character, 0);
  uint32_t code = byte_at(character, 0) & (0x7FU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte_at(character, i) & 0x3FU);
  return code;
}

bool steers_a_terminal(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool ends_a_line = code == 0x2028 || code == 0x2029;
  const bool turns_text = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                          (code >= 0x2066 && code <= 0x206F);
  return control || ends_a_line || turns_text;
}

std::string escaped(uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, code < 0x80 ? "\\x%02x" : "\\u%04x", code);
  return text;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const uint32_t lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return 0;
  }
  const uint32_t second = byte_at(text, 1);
  if (lead == 0xE0 && second < 0xA0) return 0;   // could be shorter
  if (lead == 0xED && second >= 0xA0) return 0;  // surrogate
  if (lead == 0xF0 && second < 0x90) return 0;   // could be shorter
  if (lead == 0xF4 && second >= 0x90) return 0;  // past U+10FFFF
  return length;
}

std::optional<size_t> first_invalid_utf8(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (text.size() - at >= sizeof eight) {  // most text is mostly ASCII
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080ULL) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

size_t text_columns(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; }));
}

std::string printable(std::string_view text, size_t longest) {
  std::string shown;
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (at + (length == 0 ? 1 : length) > longest) return shown + "...";
    const std::string_view character = text.substr(at, length == 0 ? 1 : length);
    if (length == 0) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "\\x%02x", byte_at(text, at));
      shown += byte;
    } else if (steers_a_terminal(code_point(character))) {
      shown += escaped(code_point(character));
    } else {
      shown += character;
    }
    at += character.size();
  }
  return shown;
}

}  // namespace siamese

// Characters: walking UTF-8 that is known to be valid, and what kind a character is. The kinds are those that the
// Python `tokenizers` library sees (character_kinds.h), whose parts follow different versions of Unicode: ids depend on
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace siamese::text {

enum Kind : uint16_t {
  kUppercase = 1 << 0,     // \p{Lu}
  kLowercase = 1 << 1,     // \p{Ll}
  kTitlecase = 1 << 2,     // \p{Lt}
  kModifier = 1 << 3,      // \p{Lm}
  kOtherLetter = 1 << 4,   // \p{Lo}
  kMark = 1 << 5,          // \p{M}
  kDecimal = 1 << 6,       // \p{Nd}
  kOtherNumber = 1 << 7,   // \p{Nl} \p{No}
  kCategoryP = 1 << 8,     // \p{P}
  kSpace = 1 << 9,         // White_Space
  kRegexWord = 1 << 10,    // \w of a regular expression in a file
  kWord = 1 << 11,         // what Whitespace and single_word call part of a word
  kDigit = 1 << 12,        // what Digits looks for
  kPunctuation = 1 << 13,  // what Punctuation looks for
  kLetter = kUppercase | kLowercase | kTitlecase | kModifier | kOtherLetter,
  kNumber = kDecimal | kOtherNumber,
};

inline constexpr uint32_t kCharacters = 0x110000;

// The kinds of each character.
const uint16_t* kinds();

// The character at `at`, which begins one; moves past it.
inline uint32_t next_character(const char*& at) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) {
    at += 1;
    return first;
  }
  if (first < 0xE0) {
    const uint32_t value = ((first & 0x1F) << 6) | (byte(1) & 0x3F);
    at += 2;
    return value;
  }
  if (first < 0xF0) {
    const uint32_t value = ((first & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
    at += 3;
    return value;
  }
  const uint32_t value = ((first & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F);
  at += 4;
  return value;
}

// Bytes of the character that begins with `first`.
inline size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The last character of valid, non-empty text.
inline uint32_t last_character(std::string_view text) {
  const char* at = text.data() + text.size() - 1;
  while ((static_cast<unsigned char>(*at) & 0xC0) == 0x80) --at;
  return next_character(at);
}

inline uint32_t first_character(std::string_view text) {
  const char* at = text.data();
  return next_character(at);
}

void append_character(std::string& text, uint32_t character);

// The one character that `text` is; false when it is not exactly one.
bool is_one_character(std::string_view text);

// How `tokenizers` lowers a character: by the character, without regard to its neighbours.
void append_lower(std::string& text, uint32_t character);

}  // namespace siamese::text

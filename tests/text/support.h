// What the tests of this room share: tokenizer files made of parts, random text, and a look at errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/text/characters.h"
#include "siamese/text/tokenizer.h"

namespace siamese::text {

// A tokenizer file of the given parts, each JSON; "" is null.
struct FileParts {
  std::string model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";
  std::string added = "[]";
  std::string normalizer;
  std::string pre_tokenizer;
  std::string post_processor;
  std::string decoder;

  std::string text() const {
    const auto part = [](const std::string& value) { return value.empty() ? std::string("null") : value; };
    return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": )" + added +
           R"(, "normalizer": )" + part(normalizer) + R"(, "pre_tokenizer": )" + part(pre_tokenizer) +
           R"(, "post_processor": )" + part(post_processor) + R"(, "decoder": )" + part(decoder) + R"(, "model": )" +
           model + "}";
  }
  Tokenizer open() const { return Tokenizer::parse(text(), "file"); }
};

inline void expect_refused(const FileParts& parts, const std::vector<std::string>& words) {
  try {
    parts.open();
    ADD_FAILURE() << "was read; expected a message with '" << words.front() << "'";
  } catch (const DataError& error) {
    const std::string message = error.what();
    for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("file: ")) << message;
  }
}

// Characters that patterns tell apart, and any others: ASCII, spaces and breaks of all kinds, letters with and without
// case, marks, numbers, symbols, and characters from everywhere.
inline std::string random_text(uint64_t seed, size_t characters) {
  static const std::vector<uint32_t> telling{
      ' ',    ' ',      ' ',     '\n',   '\r',   '\t',   '\'',   's',    'S',    'l',    'L',    'r',
      'e',    'v',      't',     'd',    'm',    'a',    'Z',    '0',    '9',    '_',    '-',    '.',
      '<',    '|',      0x17F,   0x130,  0xDF,   0xE9,   0x301,  0x316,  0x3B1,  0x3A3,  0x416,  0x5D0,
      0x627,  0x663,    0x905,   0x93E,  0xAC00, 0x1100, 0x1161, 0x11A8, 0x4E2D, 0x3042, 0x85,   0xA0,
      0x1680, 0x180E,   0x2003,  0x2028, 0x200D, 0x3000, 0xFEFF, 0x00B2, 0x2160, 0x216F, 0x24B6, 0x1F600,
      0x0660, 0x10FFFF, 0x1D7D8, 0x212A, 0x2581, 0x0,    0x7F,   0xFB01, 0x1E9E, 0xFF21, 0x20AC, 0x3007};
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    const uint64_t draw = random_u64(seed, 7, i);
    uint32_t character = telling[(draw >> 8) % telling.size()];
    if (draw % 8 == 0) character = 0x20 + static_cast<uint32_t>((draw >> 8) % 0x5F);
    if (draw % 16 == 1) {
      do {
        character = static_cast<uint32_t>(random_below(draw % 32 == 1 ? 0x3000 : kCharacters, seed, 8 + character, i));
      } while (character >= 0xD800 && character < 0xE000);
    }
    append_character(text, character);
  }
  return text;
}

}  // namespace siamese::text

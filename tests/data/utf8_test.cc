#include "siamese/data/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace siamese::data {
namespace {

std::optional<size_t> first_invalid(const std::string& text) {
  return first_invalid_utf8(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(Utf8, ValidTextIsValid) {
  for (const std::string text : {"", "plain ASCII, longer than eight bytes", "größer", "日本語", "\U0001F600",
                                 "\xEF\xBB\xBF"
                                 "bom",
                                 "\u0080\u07FF\u0800\uD7FF\uE000\uFFFF", "\U00010000\U0010FFFF"}) {
    EXPECT_FALSE(first_invalid(text)) << text;
  }
  EXPECT_FALSE(first_invalid(std::string(100, '\0')));
}

TEST(Utf8, EveryKindOfBrokenCharacterIsFoundWhereItStarts) {
  const std::vector<std::string> broken = {
      "\x80",  // a continuation alone
      "\xBF",
      "\xC0\x80",  // not the shortest form
      "\xC1\xBF",
      "\xE0\x80\x80",
      "\xE0\x9F\xBF",
      "\xF0\x80\x80\x80",
      "\xF0\x8F\xBF\xBF",
      "\xED\xA0\x80",  // surrogates
      "\xED\xBF\xBF",
      "\xF4\x90\x80\x80",  // past U+10FFFF
      "\xF5\x80\x80\x80",
      "\xFE",
      "\xFF",
      "\xC3",
      "\xE2\x82",
      "\xF0\x9F\x98",  // cut off
      "\xC3 ",
      "\xE2\x82 ",
      "\xF0\x9F\x98 ",
      "\xE2 \x82",
  };
  for (const auto& bytes : broken) {
    for (const size_t before : {0U, 1U, 7U, 8U, 9U, 33U}) {
      EXPECT_EQ(first_invalid(std::string(before, 'a') + bytes), before);
      EXPECT_EQ(first_invalid(std::string(before, 'a') + "é" + bytes + "more text after it"), before + 2);
    }
  }
}

TEST(Utf8, TheRestOfACharacterIsNotReadPastTheEnd) {
  const std::string text = "x\U0001F600";
  for (size_t length = 2; length < text.size(); ++length) {
    EXPECT_EQ(first_invalid_utf8(std::as_bytes(std::span(text.data(), length))), 1U);
  }
}

}  // namespace
}  // namespace siamese::data

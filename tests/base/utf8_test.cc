#include "siamese/base/utf8.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace siamese {
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

TEST(Printable, WhatSteersATerminalIsShownAsItsNumber) {
  EXPECT_EQ(printable("plain, größer, 日本語 \U0001F600"), "plain, größer, 日本語 \U0001F600");
  EXPECT_EQ(printable("a\nb\tc\r\x1b[2J\x7f"), "a\\x0ab\\x09c\\x0d\\x1b[2J\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u0085\u009b31m\u009f\u00a0"), "\\u0085\\u009b31m\\u009f\u00a0");  // C1, and what follows it
  EXPECT_EQ(printable("x\u202egpj.\u2066\u2069\u200f\u061c\u2028"), "x\\u202egpj.\\u2066\\u2069\\u200f\\u061c\\u2028");
  EXPECT_EQ(printable("\xff\xfe"
                      "a\xc3"),
            "\\xff\\xfea\\xc3");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");  // C1 of a terminal that does not read UTF-8
}

TEST(Printable, ALongTextIsCutBetweenCharacters) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("abcé", 4), "abc...");
  EXPECT_EQ(printable("", 0), "");
}

}  // namespace
}  // namespace siamese

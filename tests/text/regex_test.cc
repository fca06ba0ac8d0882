#include "siamese/text/regex.h"

#include "tests/text/support.h"

#include "siamese/text/regex_syntax.h"

namespace siamese::text {
namespace {

std::vector<std::string> matches(const std::string& pattern, std::string_view text) {
  const Regex regex(pattern, "test");
  std::vector<std::string> found;
  size_t begin = 0;
  size_t end = 0;
  for (Regex::Walk walk(regex, text); walk.next(begin, end);) found.emplace_back(text.substr(begin, end - begin));
  return found;
}

using Strings = std::vector<std::string>;

TEST(Regex, WhatOnigurumaMeans) {
  EXPECT_EQ(matches(R"(\s)", "a\u180e\u00a0b"), Strings{"\u00a0"});  // PCRE2's \s has U+180E
  EXPECT_EQ(matches(R"([^\s])", "\u180e "), Strings{"\u180e"});
  EXPECT_EQ(matches(R"([\S])", "\u180e "), Strings{"\u180e"});
  EXPECT_EQ(matches(R"(\w+)", "e\u0301_\u2460"), Strings{"e\u0301_"});  // marks are part of a word, ① is not
  EXPECT_EQ(matches(R"(\h+)", "xyzAf09"), Strings{"Af09"});
  EXPECT_EQ(matches(R"(\u00e9)", "é"), Strings{"é"});
  EXPECT_EQ(matches(R"(a{,2})", "aaa"), (Strings{"aa", "a"}));
  EXPECT_EQ(matches(R"(\p{Letter}+)", "ab1"), Strings{"ab"});
  EXPECT_EQ(matches(R"(\p{^L}+)", "ab1"), Strings{"1"});
  EXPECT_EQ(matches(R"(\p{Han}+)", "a中、"), Strings{"中"});  // the comma is Han by Script_Extensions only
  EXPECT_EQ(matches(R"((?i:'s))", "'S'\u017f"), (Strings{"'S", "'\u017f"}));
  EXPECT_EQ(matches(R"(\bb)", "ab b"), Strings{"b"});
  EXPECT_EQ(matches("^b", "a\nb"), Strings{"b"});
  EXPECT_EQ(matches("{a}", "{a}"), Strings{"{a}"});
}

TEST(Regex, EmptyMatchesEnd) {
  EXPECT_EQ(matches("x*", "axb"), (Strings{"", "x", ""}));
  EXPECT_EQ(matches("", "ä"), (Strings{"", ""}));
}

TEST(Regex, RefusedByName) {
  for (const auto& [pattern, word] :
       std::vector<std::pair<std::string, std::string>>{{"[a[b]]", "a class within a class"},
                                                        {"[a&&b]", "&&"},
                                                        {"[[:alpha:]]", "a class within a class"},
                                                        {"a{1,2}+", "{n,m}"},
                                                        {"(?<name>a)", "(?<nam"},
                                                        {"(?m:a)", "(?m:a)"},
                                                        {"\\K", "\\K"},
                                                        {"a\\", "at its end"},
                                                        {"[a", "without its ]"},
                                                        {"\\p{Nonsense}", "not understood"},
                                                        {"(a", "not understood"},
                                                        {"\\1", "\\1"}}) {
    try {
      Regex(pattern, "where");
      ADD_FAILURE() << pattern;
    } catch (const DataError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("where: ")) << error.what();
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

TEST(Regex, GivesUpWithOneLine) {
  const Regex regex("(a+)+$", "where");
  const std::string hostile = std::string(40, 'a') + "b";
  size_t begin = 0;
  size_t end = 0;
  try {
    Regex::Walk walk(regex, hostile);
    EXPECT_FALSE(walk.next(begin, end));
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("gave up"), std::string::npos);
  }
}

}  // namespace
}  // namespace siamese::text

#include "siamese/text/scan.h"

#include "tests/text/support.h"

#include "siamese/text/regex.h"

namespace siamese::text {
namespace {

// The loop and the expression give the same pieces.
void expect_same(Scan scan, const Regex& regex, const std::string& text) {
  std::vector<std::string> by_regex;
  size_t begin = 0;
  size_t end = 0;
  size_t covered = 0;
  for (Regex::Walk walk(regex, text); walk.next(begin, end); covered = end) {
    ASSERT_EQ(begin, covered) << "the expression covers every text";
    by_regex.push_back(text.substr(begin, end - begin));
  }
  std::vector<std::string> by_loop;
  const char* const stop = text.data() + text.size();
  for (const char* at = text.data(); at < stop;) {
    const char* const next = next_piece(scan, at, stop);
    ASSERT_GT(next, at);
    by_loop.emplace_back(at, next);
    at = next;
  }
  ASSERT_EQ(by_loop, by_regex);
}

TEST(Scan, EqualsTheExpressionOnRandomText) {
  for (const auto& [scan, name] : EnumText<Scan>::names) {
    const Regex regex(std::string(pattern_of(scan)), "test");
    for (uint64_t seed = 0; seed < 20'000; ++seed) {
      expect_same(scan, regex, random_text(seed, 1 + seed % 24));
      if (HasFatalFailure()) FAIL() << name << " " << seed;
    }
  }
}

TEST(Scan, EqualsTheExpressionOnEveryCharacter) {
  for (const auto& [scan, name] : EnumText<Scan>::names) {
    const Regex regex(std::string(pattern_of(scan)), "test");
    std::string text;
    for (uint32_t character = 0; character < kCharacters; ++character) {
      if (character >= 0xD800 && character < 0xE000) continue;
      text += "a ";
      append_character(text, character);
      if (text.size() < 4096 && character + 1 < kCharacters) continue;
      expect_same(scan, regex, text);
      if (HasFatalFailure()) FAIL() << name << " before " << character;
      text.clear();
    }
  }
}

TEST(Scan, KnowsItsExpressions) {
  for (const auto& [scan, name] : EnumText<Scan>::names) EXPECT_EQ(scan_of(pattern_of(scan)), scan);
  EXPECT_EQ(scan_of(R"(\s+)"), std::nullopt);
}

}  // namespace
}  // namespace siamese::text

#include "siamese/text/regex_classes.h"

#include <array>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/text/characters.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace siamese::text {
namespace {

// Which characters PCRE2 finds in the class.
std::vector<bool> members(const std::string& pattern) {
  static const std::string every = [] {
    std::string text;
    for (uint32_t c = 0; c < kCharacters; ++c) {
      if (c < 0xD800 || c >= 0xE000) append_character(text, c);
    }
    return text;
  }();
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                   &error, &offset, nullptr);
  SIAMESE_INVARIANT(code != nullptr);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  auto* const match = pcre2_match_data_create(1, nullptr);
  std::vector<bool> found(kCharacters);
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(every.data());
  size_t from = 0;
  while (pcre2_match(code, subject, every.size(), from, PCRE2_NO_UTF_CHECK, match, nullptr) > 0) {
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match);
    for (const char* at = every.data() + ends[0]; at < every.data() + ends[1];) found[next_character(at)] = true;
    from = ends[1];
  }
  pcre2_match_data_free(match);
  pcre2_code_free(code);
  return found;
}

std::string missing_ranges(std::string_view pcre2, uint16_t mask) {
  const std::vector<bool> known = members(fmt::format("[{}]+", pcre2));
  const auto is_missing = [&](uint32_t c) { return (kinds()[c] & mask) != 0 && !known[c]; };
  std::string out;
  for (uint32_t c = 0; c < kCharacters; ++c) {
    if (!is_missing(c)) continue;
    uint32_t last = c;
    while (last + 1 < kCharacters && is_missing(last + 1)) ++last;
    out += last == c ? fmt::format("\\x{{{:X}}}", c) : fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", c, last);
    c = last;
  }
  return out;
}

}  // namespace

std::string completed_class(std::string_view pcre2, uint16_t mask) {
  static std::mutex mutex;
  static std::map<std::string, std::string, std::less<>> all;
  const std::lock_guard lock(mutex);
  auto found = all.find(pcre2);
  if (found == all.end()) {
    found = all.emplace(std::string(pcre2), std::string(pcre2) + missing_ranges(pcre2, mask)).first;
  }
  return found->second;
}

uint16_t kinds_of_category(std::string_view category) {
  struct Known {
    std::string_view name;
    uint16_t kinds;
  };
  static constexpr std::array<Known, 10> kKnown{{{"L", kLetter},
                                                 {"Lu", kUppercase},
                                                 {"Ll", kLowercase},
                                                 {"Lt", kTitlecase},
                                                 {"Lm", kModifier},
                                                 {"Lo", kOtherLetter},
                                                 {"M", kMark},
                                                 {"N", kNumber},
                                                 {"Nd", kDecimal},
                                                 {"P", kCategoryP}}};
  for (const Known& known : kKnown) {
    if (known.name == category) return known.kinds;
  }
  return 0;
}

}  // namespace siamese::text

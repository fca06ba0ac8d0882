#include "siamese/text/regex_syntax.h"

#include <array>
#include <cctype>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"
#include "siamese/text/characters.h"
#include "siamese/text/regex_classes.h"

namespace siamese::text {
namespace {

constexpr std::string_view kSpaces =
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
constexpr std::string_view kWords = "\\p{L}\\p{M}\\p{Nd}\\p{Pc}";

std::string words() { return completed_class(kWords, kRegexWord); }

struct LongName {
  std::string_view name;
  std::string_view pcre2;
};
// In lower case, without space, _ and -.
constexpr std::array<LongName, 37> kLongNames{{{"letter", "L"},
                                               {"casedletter", "L&"},
                                               {"uppercaseletter", "Lu"},
                                               {"lowercaseletter", "Ll"},
                                               {"titlecaseletter", "Lt"},
                                               {"modifierletter", "Lm"},
                                               {"otherletter", "Lo"},
                                               {"mark", "M"},
                                               {"nonspacingmark", "Mn"},
                                               {"spacingmark", "Mc"},
                                               {"enclosingmark", "Me"},
                                               {"number", "N"},
                                               {"decimalnumber", "Nd"},
                                               {"letternumber", "Nl"},
                                               {"othernumber", "No"},
                                               {"punctuation", "P"},
                                               {"connectorpunctuation", "Pc"},
                                               {"dashpunctuation", "Pd"},
                                               {"openpunctuation", "Ps"},
                                               {"closepunctuation", "Pe"},
                                               {"initialpunctuation", "Pi"},
                                               {"finalpunctuation", "Pf"},
                                               {"otherpunctuation", "Po"},
                                               {"symbol", "S"},
                                               {"mathsymbol", "Sm"},
                                               {"currencysymbol", "Sc"},
                                               {"modifiersymbol", "Sk"},
                                               {"othersymbol", "So"},
                                               {"separator", "Z"},
                                               {"spaceseparator", "Zs"},
                                               {"lineseparator", "Zl"},
                                               {"paragraphseparator", "Zp"},
                                               {"other", "C"},
                                               {"control", "Cc"},
                                               {"format", "Cf"},
                                               {"unassigned", "Cn"},
                                               {"privateuse", "Co"}}};

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) step();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(fmt::format("{}: the regular expression {} has {}, which is not supported", where_,
                                io::in_quotes(pattern_), what));
  }

  bool begins(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  void take(size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void step() {
    switch (pattern_[at_]) {
      case '\\':
        return escape(false);
      case '[':
        return character_class();
      case '(':
        return group();
      case '{':
        return interval();
      default:
        take(1);
    }
  }

  void group() {
    if (!begins("(?")) return take(1);
    for (const std::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)", "(?-i:", "(?-i)"}) {
      if (begins(known)) return take(known.size());
    }
    refuse("the group " + io::in_quotes(pattern_.substr(at_, 6)));
  }

  // {n}, {n,}, {n,m}, {,m}; anything else is a brace.
  void interval() {
    const size_t end = pattern_.find('}', at_);
    bool digits = false;
    bool comma = false;
    for (size_t i = at_ + 1; i < std::min(end, pattern_.size()); ++i) {
      if (pattern_[i] == ',' && !comma) {
        comma = true;
      } else if (std::isdigit(static_cast<unsigned char>(pattern_[i])) != 0) {
        digits = true;
      } else {
        digits = false;
        break;
      }
    }
    if (end == std::string_view::npos || !digits) {
      out_ += "\\{";
      ++at_;
      return;
    }
    if (pattern_[at_ + 1] == ',') {
      out_ += "{0";
      ++at_;
    }
    take(end + 1 - at_);
    if (at_ < pattern_.size() && pattern_[at_] == '+') refuse("a + after {n,m}");
  }

  void character_class() {
    take(1);
    if (begins("^")) take(1);
    bool first = true;
    while (true) {
      if (at_ >= pattern_.size()) refuse("a [ without its ]");
      const char c = pattern_[at_];
      if (c == ']' && !first) return take(1);
      if (c == '[') refuse("a class within a class");
      if (begins("&&")) refuse("an intersection of classes (&&)");
      if (c == '\\') {
        escape(true);
      } else {
        take(1);
      }
      first = false;
    }
  }

  void escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) refuse("a \\ at its end");
    const char c = pattern_[at_ + 1];
    const auto put = [&](std::string_view text) {
      out_ += text;
      at_ += 2;
    };
    const auto put_class = [&](std::string_view inner, bool negated) {
      if (in_class && negated) refuse(fmt::format("\\{} within a class", c));
      put(in_class ? std::string(inner) : fmt::format("[{}{}]", negated ? "^" : "", inner));
    };
    switch (c) {
      case 's':
        return put_class(kSpaces, false);
      case 'S':
        return in_class ? put("\\S\\x{180E}") : put_class(kSpaces, true);
      case 'w':
      case 'W':
        return put_class(words(), c == 'W');
      case 'h':
      case 'H':
        return put_class("0-9A-Fa-f", c == 'H');
      case 'd':
        return put_class(completed_class("\\p{Nd}", kDecimal), false);
      case 'D':
        return put_class(completed_class("\\p{Nd}", kDecimal), true);
      case 'v':
        return put("\\x{0B}");
      case 'b':
        if (in_class) return put("\\x{08}");
        return put(fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", words()));
      case 'B':
        if (in_class) refuse("\\B within a class");
        return put(fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", words()));
      case 'p':
      case 'P':
        return property(in_class);
      case 'u':
        return hexadecimal();
      case 'x':
      case 'A':
      case 'z':
      case 'Z':
      case 'a':
      case 'e':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        return take(2);
      default:
        break;
    }
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) refuse(fmt::format("\\{}", c));
    take(1);
    // The escaped character may have several bytes.
    do {
      take(1);
    } while (at_ < pattern_.size() && (static_cast<unsigned char>(pattern_[at_]) & 0xC0) == 0x80);
  }

  void property(bool in_class) {
    if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{') refuse("\\p without {name}");
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) refuse("\\p{ without }");
    std::string name(pattern_.substr(at_ + 3, end - at_ - 3));
    bool negated = pattern_[at_ + 1] == 'P';
    at_ = end + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.erase(0, 1);
    }
    std::string plain;
    for (const char c : name) {
      if (c == ' ' || c == '_' || c == '-') continue;
      if (std::isalpha(static_cast<unsigned char>(c)) == 0) refuse("the property " + io::in_quotes(name));
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    for (const LongName& known : kLongNames) {
      if (known.name == plain) plain = known.pcre2;
    }
    // One or two letters: a category. Longer: a script, of which PCRE2 would take the extensions too.
    const bool category = plain.size() <= 2;
    if (category && !plain.empty()) plain[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(plain[0])));
    if (const uint16_t mask = kinds_of_category(plain); mask != 0 && !(in_class && negated)) {
      const std::string inner = completed_class(fmt::format("\\p{{{}}}", plain), mask);
      out_ += in_class ? inner : fmt::format("[{}{}]", negated ? "^" : "", inner);
      return;
    }
    out_ += fmt::format("\\{}{{{}{}}}", negated ? 'P' : 'p', category ? "" : "sc:", plain);
  }

  void hexadecimal() {
    const std::string_view digits = pattern_.substr(at_ + 2, 4);
    for (const char c : digits) {
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) refuse("\\u without four hexadecimal digits");
    }
    if (digits.size() != 4) refuse("\\u without four hexadecimal digits");
    out_ += fmt::format("\\x{{{}}}", digits);
    at_ += 6;
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
};

}  // namespace

std::string translate_regex(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace siamese::text

#include "siamese/text/scan.h"

#include "siamese/text/characters.h"

namespace siamese::text {

namespace {

constexpr std::string_view pattern_text(Scan scan) {
  switch (scan) {
    case Scan::gpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case Scan::cl100k:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case Scan::qwen:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  return {};
}

class Scanner {
 public:
  explicit Scanner(const char* end) : end_(end), kinds_(kinds()) {}

  const char* gpt2(const char* at) const {
    if (*at == '\'') {
      if (const char* const after = contraction(at, false)) return after;
    }
    const char* second = at;
    uint16_t kind = take(second);
    if (*at == ' ' && second < end_) {
      const char* third = second;
      const uint16_t next = take(third);
      if ((next & kSpace) == 0) {
        kind = next;
        second = third;
      }
    }
    if ((kind & kLetter) != 0) return run(second, kLetter);
    if ((kind & kNumber) != 0) return run(second, kNumber);
    if ((kind & kSpace) == 0) return others(second);
    return spaces(at, second, false);
  }

  const char* cl100k(const char* at, int most_digits) const {
    if (*at == '\'') {
      if (const char* const after = contraction(at, true)) return after;
    }
    const char* second = at;
    const uint16_t kind = take(second);
    if ((kind & kLetter) != 0) return run(second, kLetter);
    if ((kind & kNumber) != 0) {
      for (int digits = 1; digits < most_digits && second < end_; ++digits) {
        const char* next = second;
        if ((take(next) & kNumber) == 0) break;
        second = next;
      }
      return second;
    }
    const bool breaks = is_break(*at);
    if (second < end_ && !breaks) {
      const char* third = second;
      const uint16_t next = take(third);
      if ((next & kLetter) != 0) return run(third, kLetter);
      if (*at == ' ' && (next & (kSpace | kNumber)) == 0) return past_breaks(others(third));
    }
    if ((kind & kSpace) == 0) return past_breaks(others(second));
    return spaces(at, second, true);
  }

 private:
  static bool is_break(char c) { return c == '\r' || c == '\n'; }

  uint16_t take(const char*& at) const {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x80) {
      ++at;
      return kinds_[byte];
    }
    return kinds_[next_character(at)];
  }

  const char* run(const char* at, uint16_t kind) const {
    while (at < end_) {
      const char* next = at;
      if ((take(next) & kind) == 0) break;
      at = next;
    }
    return at;
  }

  const char* others(const char* at) const {
    while (at < end_) {
      const char* next = at;
      if ((take(next) & (kSpace | kLetter | kNumber)) != 0) break;
      at = next;
    }
    return at;
  }

  const char* past_breaks(const char* at) const {
    while (at < end_ && is_break(*at)) ++at;
    return at;
  }

  // A run of spaces that begins at `at`. With `lines`, up to its last line break if it has one. Else it leaves its last
  // character to a word that follows, unless it has no other.
  const char* spaces(const char* at, const char* second, bool lines) const {
    const char* last = at;  // the run's last character
    const char* after_break = lines && is_break(*at) ? second : nullptr;
    const char* stop = second;
    while (stop < end_) {
      const char* next = stop;
      if ((take(next) & kSpace) == 0) break;
      if (lines && is_break(*stop)) after_break = next;
      last = stop;
      stop = next;
    }
    if (after_break != nullptr) return after_break;
    return stop == end_ || last == at ? stop : last;
  }

  // 's 't 're 've 'm 'll 'd. Without regard to case the long s of old print is an s.
  const char* contraction(const char* at, bool any_case) const {
    const auto letter = [&](const char* where) -> char {
      if (where >= end_) return '\0';
      const char c = *where;
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char first = letter(at + 1);
    switch (first) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return at + 2;
      case 'r':
      case 'v':
        return letter(at + 2) == 'e' ? at + 3 : nullptr;
      case 'l':
        return letter(at + 2) == 'l' ? at + 3 : nullptr;
      default:
        break;
    }
    if (any_case && end_ - at >= 3 && at[1] == '\xC5' && at[2] == '\xBF') return at + 3;
    return nullptr;
  }

  const char* end_;
  const uint16_t* kinds_;
};

}  // namespace

std::optional<Scan> scan_of(std::string_view pattern) {
  for (const auto& [scan, name] : EnumText<Scan>::names) {
    if (pattern == pattern_text(scan)) return scan;
  }
  return std::nullopt;
}

std::string_view pattern_of(Scan scan) { return pattern_text(scan); }

const char* next_piece(Scan scan, const char* at, const char* end) {
  const Scanner scanner(end);
  switch (scan) {
    case Scan::gpt2:
      return scanner.gpt2(at);
    case Scan::cl100k:
      return scanner.cl100k(at, 3);
    case Scan::qwen:
      return scanner.cl100k(at, 1);
  }
  return end;
}

}  // namespace siamese::text

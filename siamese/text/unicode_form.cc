#include "siamese/text/unicode_form.h"

#include <algorithm>
#include <array>
#include <vector>

#include <utf8proc.h>

#include "siamese/base/check.h"
#include "siamese/text/characters.h"

namespace siamese::text {
namespace {

int options_of(Form form) {
  const bool compatible = form == Form::nfkc || form == Form::nfkd;
  return UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
}

bool composed(Form form) { return form == Form::nfc || form == Form::nfkc; }

int combining_class(utf8proc_int32_t character) { return utf8proc_get_property(character)->combining_class; }

// `tokenizers` has the forms of Unicode 12.0: what came later stays as it is.
bool is_newer(uint32_t c) {
  return c == 0x32FF || (c >= 0xA7F2 && c <= 0xA7F4) || c == 0xAB69 || (c >= 0x10780 && c <= 0x107BA) || c == 0x11938 ||
         (c >= 0x1E030 && c <= 0x1E06D) || c == 0x1F16C || (c >= 0x1FBF0 && c <= 0x1FBF9);
}

void decompose(Form form, uint32_t character, std::vector<utf8proc_int32_t>& out) {
  if (is_newer(character)) return out.push_back(static_cast<utf8proc_int32_t>(character));
  std::array<utf8proc_int32_t, 32> parts{};
  int last_boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts.data(), parts.size(),
                                             static_cast<utf8proc_option_t>(options_of(form)), &last_boundary);
  SIAMESE_INVARIANT(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()));
  out.insert(out.end(), parts.begin(), parts.begin() + count);
}

// Marks that follow one another, by their class. (utf8proc's own ordering takes quadratic time for many of them.)
void order_marks(std::vector<utf8proc_int32_t>& characters) {
  for (size_t i = 0; i < characters.size();) {
    if (combining_class(characters[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < characters.size() && combining_class(characters[end]) != 0) ++end;
    std::stable_sort(characters.begin() + static_cast<std::ptrdiff_t>(i),
                     characters.begin() + static_cast<std::ptrdiff_t>(end),
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

void append_in_form(Form form, std::string_view text, std::string& out) {
  std::vector<utf8proc_int32_t> characters;
  for (const char* at = text.data(); at < text.data() + text.size();) decompose(form, next_character(at), characters);
  order_marks(characters);
  if (composed(form)) {
    const auto left = utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
                                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    SIAMESE_INVARIANT(left >= 0);
    characters.resize(static_cast<size_t>(left));
  }
  for (const auto character : characters) append_character(out, static_cast<uint32_t>(character));
}

// Characters that stay as they are, whatever stands beside them, and begin anew: nothing before them joins with them.
// (What follows may join: a letter and the accent after it.)
std::vector<bool> make_stable(Form form) {
  std::vector<bool> stable(kCharacters, true);
  std::vector<utf8proc_int32_t> parts;
  for (uint32_t c = 0; c < kCharacters; ++c) {
    if (c == 0x323B0) c = 0xE0000;  // nothing is assigned between
    if (c == 0xE01F0) break;        // nor after that but private use
    if (c >= 0xD800 && c < 0xE000) continue;
    parts.clear();
    decompose(form, c, parts);
    if (combining_class(static_cast<utf8proc_int32_t>(c)) != 0) stable[c] = false;
    if (parts.size() == 1 && parts[0] == static_cast<utf8proc_int32_t>(c)) continue;
    std::string before;
    std::string after;
    append_character(before, c);
    append_in_form(form, before, after);
    if (after != before) stable[c] = false;
    // The later parts of what a character decomposes into are what may join with something before them.
    for (size_t i = 1; i < parts.size(); ++i) stable[static_cast<size_t>(parts[i])] = false;
  }
  for (uint32_t c = 0x1160; c < 0x1200; ++c) stable[c] = false;  // Hangul vowels and finals join by arithmetic
  return stable;
}

const std::vector<bool>& stable_in(Form form) {
  static const std::vector<bool> nfc = make_stable(Form::nfc);
  if (form == Form::nfc) return nfc;
  static const std::array<std::vector<bool>, 3> others{make_stable(Form::nfd), make_stable(Form::nfkc),
                                                       make_stable(Form::nfkd)};
  return others[static_cast<size_t>(form) - 1];
}

// The first byte at or after `from` that is not ASCII; ASCII is stable in every form.
const char* past_ascii(const char* at, const char* end) {
  while (at < end && static_cast<unsigned char>(*at) < 0x80) ++at;
  return at;
}

// Where the first character that is not stable begins, at or after `at`.
const char* first_unstable(const std::vector<bool>& stable, const char* at, const char* end) {
  while ((at = past_ascii(at, end)) < end) {
    const char* next = at;
    if (!stable[next_character(next)]) return at;
    at = next;
  }
  return end;
}

}  // namespace

bool surely_in_form(Form form, std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* const at = past_ascii(text.data(), end);
  return at == end || first_unstable(stable_in(form), at, end) == end;
}

std::string to_form(Form form, std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  if (past_ascii(at, end) == end) return out.append(text);
  const std::vector<bool>& stable = stable_in(form);
  while (at < end) {
    const char* unstable = first_unstable(stable, at, end);
    if (unstable == end) {
      out.append(at, end);
      break;
    }
    // With the stable character before it, up to the next stable one.
    const char* begin = unstable;
    if (begin > at) {
      do {
        --begin;
      } while ((static_cast<unsigned char>(*begin) & 0xC0) == 0x80);
    }
    const char* stop = unstable;
    for (const char* next = stop; stop < end && !stable[next_character(next)]; stop = next) {
    }
    out.append(at, begin);
    append_in_form(form, {begin, static_cast<size_t>(stop - begin)}, out);
    at = stop;
  }
  return out;
}

}  // namespace siamese::text

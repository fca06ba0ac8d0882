#include "siamese/text/characters.h"

#include <algorithm>
#include <vector>

#include <utf8proc.h>

#include "siamese/text/character_kinds.h"

namespace siamese::text {
namespace {

std::vector<uint16_t> make_kinds() {
  std::vector<uint16_t> all(kCharacters);
  for (size_t run = 0; run < kKindRuns.size(); ++run) {
    const uint32_t end = run + 1 < kKindRuns.size() ? kKindRuns[run + 1].first : kCharacters;
    std::fill(all.begin() + kKindRuns[run].first, all.begin() + end, kKindRuns[run].kinds);
  }
  return all;
}

}  // namespace

const uint16_t* kinds() {
  static const std::vector<uint16_t> all = make_kinds();
  return all.data();
}

void append_character(std::string& text, uint32_t character) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

bool is_one_character(std::string_view text) { return !text.empty() && character_bytes(text[0]) == text.size(); }

void append_lower(std::string& text, uint32_t character) {
  if (character == 0x130) {  // the only one that becomes two
    text += "i\xCC\x87";
    return;
  }
  append_character(text, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))));
}

}  // namespace siamese::text

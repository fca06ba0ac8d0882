#include "siamese/text/id_list.h"

#include <charconv>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::text {

void append_ids(std::string& out, std::span<const TokenId> ids) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ", ";
    char digits[16];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, ids[i]).ptr);
  }
  out += ']';
}

std::vector<TokenId> parse_ids(std::string_view text, const std::string& where) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto skip_spaces = [&] {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) ++at;
  };
  const auto fail = [&](const char* expected) {
    throw DataError(fmt::format("{}: expected a JSON array of token ids ({} at byte {}), got {}", where, expected,
                                at - text.data(), io::in_quotes(text)));
  };
  const auto take = [&](char wanted) {
    skip_spaces();
    if (at == end || *at != wanted) return false;
    ++at;
    return true;
  };
  std::vector<TokenId> ids;
  if (!take('[')) fail("a [");
  if (!take(']')) {
    do {
      skip_spaces();
      TokenId id = 0;
      const auto result = std::from_chars(at, end, id);
      if (result.ec != std::errc{}) fail("an id");
      at = result.ptr;
      ids.push_back(id);
    } while (take(','));
    if (!take(']')) fail("a , or ]");
  }
  skip_spaces();
  if (at != end) fail("the end");
  return ids;
}

}  // namespace siamese::text

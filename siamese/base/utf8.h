// UTF-8 (RFC 3629: shortest form only, no surrogates, at most U+10FFFF), and text that a terminal can be trusted with.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace siamese {

// Bytes of the valid character that `text` begins with, 1 to 4; 0 when there is none.
size_t utf8_length(std::string_view text);

// Byte offset of the first character that is not valid, or nothing when all are.
std::optional<size_t> first_invalid_utf8(std::span<const std::byte> bytes);

// Text on one line that cannot steer a terminal, whatever a name or a file put into it: control characters (also those
// past ASCII), line separators and what turns the direction of writing appear as \x1b or \u202e, bytes that are not
// UTF-8 as \xff. What is past `longest` bytes is cut and "..." stands for it.
std::string printable(std::string_view text, size_t longest = std::string_view::npos);

// Columns of a terminal that valid text fills, to a good guess: one a character.
size_t text_columns(std::string_view text);

}  // namespace siamese

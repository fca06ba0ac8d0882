// Is this UTF-8? (RFC 3629: shortest form only, no surrogates, at most U+10FFFF.)
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace siamese::data {

// Byte offset of the first character that is not valid, or nothing when all are.
std::optional<size_t> first_invalid_utf8(std::span<const std::byte> bytes);

}  // namespace siamese::data

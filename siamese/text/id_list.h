// Token ids as text: a JSON array, "[15496, 995]".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/text/vocabulary.h"

namespace siamese::text {

void append_ids(std::string& out, std::span<const TokenId> ids);

// DataError naming `where` and the byte for what is no array of whole numbers below 2^32.
std::vector<TokenId> parse_ids(std::string_view text, const std::string& where);

}  // namespace siamese::text

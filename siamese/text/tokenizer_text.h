// A byte-level BPE as tokenizer.json.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "siamese/text/scan.h"

namespace siamese::text {

// Tokens by id; the first `special` of them are special.
std::string byte_level_tokenizer_text(const std::vector<std::string>& tokens,
                                      const std::vector<std::pair<std::string, std::string>>& merges, size_t special,
                                      Scan split);

}  // namespace siamese::text

#include "siamese/text/vocabulary.h"

namespace siamese::text {

bool Vocabulary::add(std::string_view token, TokenId id) {
  if (id >= tokens_.size() || there_[id] || ids_.contains(token)) return false;
  tokens_[id] = token;
  there_[id] = true;
  ids_.emplace(tokens_[id], id);
  return true;
}

std::optional<TokenId> Vocabulary::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace siamese::text

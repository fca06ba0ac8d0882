// Tokens and their ids: both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace siamese::text {

using TokenId = uint32_t;

// Ids lie below this: 100 times more than any vocabulary has, and a table of them still fits into memory.
inline constexpr TokenId kMostIds = TokenId{1} << 24;

class Vocabulary {
 public:
  // For ids below `size`.
  explicit Vocabulary(TokenId size = 0) : tokens_(size), there_(size) {}

  // False when the token or the id is there already, or the id is not below the size.
  bool add(std::string_view token, TokenId id);

  std::optional<TokenId> id_of(std::string_view token) const;
  // nullptr for an id without a token.
  const std::string* token_of(TokenId id) const { return id < tokens_.size() && there_[id] ? &tokens_[id] : nullptr; }

  size_t count() const { return ids_.size(); }
  TokenId size() const { return static_cast<TokenId>(tokens_.size()); }  // one past the largest id

 private:
  std::vector<std::string> tokens_;  // by id; never grows, so that the views below stay good
  std::vector<bool> there_;
  std::unordered_map<std::string_view, TokenId> ids_;
};

}  // namespace siamese::text

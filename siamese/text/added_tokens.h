// Tokens that a tokenizer file adds to its vocabulary, special ones (<|endoftext|>) and others. They are found in the
// text before anything else happens to it, the leftmost first, of several there the longest; those with `normalized` in
// the text after normalization.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/text/vocabulary.h"

namespace siamese::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  std::string decoded;       // as it comes out: `content`, normalized if it is looked for so
  bool single_word = false;  // only where no word character stands beside it
  bool lstrip = false;       // it takes the spaces before it
  bool rstrip = false;       // and after it
  bool normalized = false;
  bool special = false;
};

// Finds some of the tokens.
class AddedTokenFinder {
 public:
  // Looks for `content` and finds `token`. Contents differ and are not empty.
  struct Entry {
    std::string content;
    const AddedToken* token;
  };
  explicit AddedTokenFinder(const std::vector<Entry>& entries = {});

  // The text in parts: `use(token, begin, end)`, with nullptr for a part without one. No part is empty.
  void split(std::string_view text,
             const std::function<void(const AddedToken* token, size_t begin, size_t end)>& use) const;

  bool empty() const { return nodes_.size() <= 1; }

 private:
  // A node of a trie; children are a list.
  struct Node {
    unsigned char byte = 0;
    uint32_t first_child = 0;
    uint32_t next_sibling = 0;
    const AddedToken* token = nullptr;
  };
  uint32_t child(uint32_t node, unsigned char byte) const;
  const AddedToken* longest_at(std::string_view text, size_t at, size_t& end) const;

  std::vector<Node> nodes_;          // the first is the root
  std::vector<uint32_t> from_root_;  // by byte; 0: none
};

}  // namespace siamese::text

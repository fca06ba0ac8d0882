// Byte-pair encoding of one word: its characters (or bytes) are merged, the pair of lowest rank first, of equal ranks
// the leftmost, until no pair of neighbours is in the table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "siamese/text/merge_table.h"
#include "siamese/text/vocabulary.h"
#include "siamese/text/word_cache.h"

namespace siamese::text {

struct BpeOptions {
  // The words are the text's own bytes, and the tokens' characters stand for bytes (byte_level.h).
  bool bytes = false;
  bool ignore_merges = false;  // a word that is a token is that token
  bool byte_fallback = false;  // a character without a token becomes <0x..>, one for each byte
  bool fuse_unk = false;       // neighbouring characters without a token become one `unk`
  std::string unk;             // "": a character without a token vanishes
};

class Bpe {
 public:
  // One thread's own memory.
  struct Scratch {
    WordCache cache;
    std::vector<TokenId> symbols;
  };

  // DataError naming `where` when a merge or `unk` needs a token that the vocabulary does not have.
  Bpe(const Vocabulary& vocabulary, const std::vector<std::pair<std::string, std::string>>& merges,
      const BpeOptions& options, const std::string& where);

  // Appends the ids of a non-empty word of valid UTF-8. DataError for one of more than 64 MiB.
  void encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;

  const BpeOptions& options() const { return options_; }

 private:
  void encode_directly(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_cached(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void first_symbols(std::string_view word, std::vector<TokenId>& symbols) const;
  size_t segment_bytes(std::string_view word) const;
  void note_join(std::string_view left, std::string_view right);
  bool joins(uint32_t left, uint32_t right) const;
  TokenId symbol_of(uint32_t character) const;

  BpeOptions options_;
  MergeTable merges_;
  std::array<TokenId, 256> byte_ids_{};   // of a byte: bytes mode, or byte_fallback
  std::array<TokenId, 128> ascii_ids_{};  // of a character
  MergeTable character_ids_;              // of one past ASCII: (0, character)
  TokenId unk_id_ = kNone;

  // Neighbouring symbols (bytes or characters) that some merge joins across. Between any others a long word falls into
  // parts that know nothing of each other.
  std::vector<bool> joined_;  // 256 x 256
  MergeTable joined_more_;    // where one of the two is past that

  std::unordered_map<std::string, TokenId> whole_;  // ignore_merges
  size_t longest_whole_ = 0;

  static constexpr TokenId kNone = UINT32_MAX;
};

// Merges in place; both give the same.
void merge_short(const MergeTable& merges, std::vector<TokenId>& symbols);  // quadratic, fast for few
void merge_long(const MergeTable& merges, std::vector<TokenId>& symbols);   // n log n

}  // namespace siamese::text

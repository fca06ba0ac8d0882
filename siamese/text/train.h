// A byte-level BPE from text: the pair of neighbouring tokens that occurs most often becomes a token, again and again.
// Ties go to the pair of lower ids, the left one first, so the same text gives the same file on any machine. Special
// tokens have the first ids, then the 256 bytes in the order of their characters (byte_level.h), then the merges: what
// the trainer of `tokenizers` does too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "siamese/text/scan.h"
#include "siamese/text/vocabulary.h"

namespace siamese::text {

struct TrainOptions {
  TokenId vocab = 32768;   // all tokens, special ones and bytes included
  uint64_t min_count = 2;  // a pair that occurs less often is not merged
  Scan split = Scan::cl100k;
  std::vector<std::string> special{"<|endoftext|>"};
};

class BpeTrainer {
 public:
  // UsageError for a vocabulary without room for special tokens and bytes.
  explicit BpeTrainer(TrainOptions options);

  // Counts the words of valid UTF-8. DataError when it is not.
  void add(std::string_view text);

  size_t words() const { return counts_.size(); }  // different ones

  // The tokenizer file. `progress(tokens so far)` is called now and then.
  std::string finish(const std::function<void(TokenId)>& progress = {}) const;

 private:
  TrainOptions options_;
  std::unordered_map<std::string, uint64_t> counts_;
};

}  // namespace siamese::text

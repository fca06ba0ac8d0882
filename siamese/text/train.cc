#include "siamese/text/train.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/text/byte_level.h"
#include "siamese/text/characters.h"
#include "siamese/text/tokenizer_text.h"

namespace siamese::text {
namespace {

using Pair = std::pair<TokenId, TokenId>;

uint64_t key_of(Pair pair) { return (uint64_t{pair.first} << 32) | pair.second; }

struct Word {
  std::vector<TokenId> symbols;
  int64_t count;
};

struct Best {
  int64_t count;
  Pair pair;
  // In a queue the greatest comes first: the largest count, then the lowest pair.
  bool operator<(const Best& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

// The state of training: words as they are merged so far, and how often each pair occurs in them.
class Merging {
 public:
  explicit Merging(std::vector<Word> words) : words_(std::move(words)) {
    for (size_t w = 0; w < words_.size(); ++w) {
      const auto& symbols = words_[w].symbols;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) change({symbols[i], symbols[i + 1]}, words_[w].count, w);
    }
    for (const auto& [key, count] : counts_)
      queue_.push({count, {static_cast<TokenId>(key >> 32), static_cast<TokenId>(key)}});
    touched_.clear();
  }

  // The most frequent pair; false when none is left.
  bool next(Best& best) {
    while (!queue_.empty()) {
      best = queue_.top();
      queue_.pop();
      const int64_t now = counts_[key_of(best.pair)];
      if (now == best.count) return best.count > 0;
      if (now > 0) queue_.push({now, best.pair});
    }
    return false;
  }

  void merge(Pair pair, TokenId into) {
    const auto where = std::move(where_[key_of(pair)]);
    where_.erase(key_of(pair));
    for (const uint32_t w : where) merge_word(w, pair, into);
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const uint64_t key : touched_) {
      if (counts_[key] > 0) queue_.push({counts_[key], {static_cast<TokenId>(key >> 32), static_cast<TokenId>(key)}});
    }
    touched_.clear();
  }

 private:
  void change(Pair pair, int64_t by, size_t word) {
    const uint64_t key = key_of(pair);
    counts_[key] += by;
    if (by < 0) return;
    auto& where = where_[key];
    if (where.empty() || where.back() != word) where.push_back(static_cast<uint32_t>(word));
    touched_.push_back(key);
  }

  void merge_word(uint32_t w, Pair pair, TokenId into) {
    auto& symbols = words_[w].symbols;
    const int64_t count = words_[w].count;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i, ++kept) {
      symbols[kept] = symbols[i];
      if (i + 1 >= symbols.size() || symbols[i] != pair.first || symbols[i + 1] != pair.second) continue;
      if (kept > 0) {
        change({symbols[kept - 1], pair.first}, -count, w);
        change({symbols[kept - 1], into}, count, w);
      }
      symbols[kept] = into;
      ++i;
      if (i + 1 < symbols.size()) {
        change({pair.second, symbols[i + 1]}, -count, w);
        change({into, symbols[i + 1]}, count, w);
      }
    }
    symbols.resize(kept);
  }

  std::vector<Word> words_;
  std::unordered_map<uint64_t, int64_t> counts_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> where_;  // words that may have the pair
  std::vector<uint64_t> touched_;                              // pairs that became more frequent
  std::priority_queue<Best> queue_;
};

}  // namespace

BpeTrainer::BpeTrainer(TrainOptions options) : options_(std::move(options)) {
  const size_t least = options_.special.size() + 256;
  if (options_.vocab < least || options_.vocab > kMostIds) {
    throw UsageError(fmt::format("the vocabulary: expected {} (special tokens and bytes) to {}, got {}", least,
                                 kMostIds, options_.vocab));
  }
  std::set<std::string> seen;
  for (const std::string& token : options_.special) {
    if (token.empty()) throw UsageError("a special token: expected text, got ''");
    if (first_invalid_utf8(std::as_bytes(std::span(token)))) throw UsageError("a special token: expected UTF-8");
    if (!seen.insert(token).second) throw UsageError("the special token '" + token + "' stands twice");
  }
}

void BpeTrainer::add(std::string_view text) {
  if (const auto wrong = first_invalid_utf8(std::as_bytes(std::span(text)))) {
    throw DataError(fmt::format("expected UTF-8 text, got byte 0x{:02x} at offset {}",
                                static_cast<unsigned char>(text[*wrong]), *wrong));
  }
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* const stop = next_piece(options_.split, at, end);
    ++counts_[std::string(at, stop)];
    at = stop;
  }
}

std::string BpeTrainer::finish(const std::function<void(TokenId)>& progress) const {
  std::vector<std::string> tokens = options_.special;
  std::vector<std::pair<uint32_t, unsigned char>> bytes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes.emplace_back(character_of_byte(static_cast<unsigned char>(byte)), static_cast<unsigned char>(byte));
  }
  std::sort(bytes.begin(), bytes.end());
  std::unordered_map<std::string, TokenId> ids;
  for (size_t i = 0; i < tokens.size(); ++i) ids[tokens[i]] = static_cast<TokenId>(i);
  std::vector<TokenId> byte_ids(256);
  for (const auto& [character, byte] : bytes) {
    std::string token;
    append_character(token, character);
    byte_ids[byte] = ids.try_emplace(token, static_cast<TokenId>(tokens.size())).first->second;
    if (byte_ids[byte] == tokens.size()) tokens.push_back(token);
  }

  std::vector<Word> words;
  words.reserve(counts_.size());
  for (const auto& [text, count] : counts_) {
    Word word{{}, static_cast<int64_t>(count)};
    for (const char c : text) word.symbols.push_back(byte_ids[static_cast<unsigned char>(c)]);
    words.push_back(std::move(word));
  }
  Merging merging(std::move(words));
  std::vector<std::pair<std::string, std::string>> merges;
  Best best{};
  while (tokens.size() < options_.vocab && merging.next(best)) {
    if (static_cast<uint64_t>(best.count) < std::max<uint64_t>(options_.min_count, 1)) break;
    const auto& [left, right] = best.pair;
    merges.emplace_back(tokens[left], tokens[right]);
    std::string token = tokens[left] + tokens[right];
    // The same text may come about in two ways; it is one token.
    const TokenId into = ids.try_emplace(token, static_cast<TokenId>(tokens.size())).first->second;
    if (into == tokens.size()) tokens.push_back(std::move(token));
    merging.merge(best.pair, into);
    if (progress && merges.size() % 256 == 0) progress(static_cast<TokenId>(tokens.size()));
  }
  return byte_level_tokenizer_text(tokens, merges, options_.special.size(), options_.split);
}

}  // namespace siamese::text

#include "siamese/text/bpe.h"

#include <algorithm>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"
#include "siamese/text/byte_level.h"
#include "siamese/text/characters.h"

namespace siamese::text {
namespace {

constexpr size_t kLongestWord = size_t{64} << 20;
constexpr size_t kShort = 96;  // symbols up to which the quadratic loop is the faster one
constexpr uint32_t kNear = 256;

size_t count_characters(const Vocabulary& vocabulary) {
  size_t count = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string* const token = vocabulary.token_of(id);
    if (token != nullptr && is_one_character(*token)) ++count;
  }
  return count;
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const std::vector<std::pair<std::string, std::string>>& merges,
         const BpeOptions& options, const std::string& where)
    : options_(options),
      merges_(merges.size()),
      character_ids_(count_characters(vocabulary)),
      joined_(size_t{kNear} * kNear),
      joined_more_(merges.size()) {
  ascii_ids_.fill(kNone);
  byte_ids_.fill(kNone);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string* const token = vocabulary.token_of(id);
    if (token == nullptr) continue;
    if (options_.ignore_merges) {
      const auto text = options_.bytes ? bytes_of_token(*token) : *token;
      if (text) whole_.emplace(*text, id);
      if (text) longest_whole_ = std::max(longest_whole_, text->size());
    }
    if (!is_one_character(*token)) continue;
    const uint32_t character = first_character(*token);
    if (options_.bytes) {
      if (const auto byte = byte_of_character(character)) byte_ids_[*byte] = id;
    } else if (character < ascii_ids_.size()) {
      ascii_ids_[character] = id;
    } else {
      character_ids_.put(0, character, {0, id});
    }
  }
  if (options_.byte_fallback && !options_.bytes) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = vocabulary.id_of(fmt::format("<0x{:02X}>", byte)).value_or(kNone);
    }
  }
  if (!options_.unk.empty()) {
    const auto id = vocabulary.id_of(options_.unk);
    if (!id) throw DataError(fmt::format("{}: the unk_token {} has no id", where, io::in_quotes(options_.unk)));
    unk_id_ = *id;
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto need = [&](const std::string& token) {
      const auto id = vocabulary.id_of(token);
      if (!id) {
        throw DataError(fmt::format("{}: merge {} needs the token {}, which the vocabulary does not have", where,
                                    rank + 1, io::in_quotes(token)));
      }
      return *id;
    };
    const TokenId left_id = need(left);
    const TokenId right_id = need(right);
    merges_.put(left_id, right_id, {static_cast<uint32_t>(rank), need(left + right)});
    note_join(left, right);
  }
}

void Bpe::note_join(std::string_view left, std::string_view right) {
  if (left.empty() || right.empty()) return;
  uint32_t a = last_character(left);
  uint32_t b = first_character(right);
  if (options_.bytes) {
    const auto byte_a = byte_of_character(a);
    const auto byte_b = byte_of_character(b);
    if (!byte_a || !byte_b) return;  // no text has these tokens
    a = *byte_a;
    b = *byte_b;
  }
  if (a < kNear && b < kNear) {
    joined_[a * kNear + b] = true;
  } else {
    joined_more_.put(a, b, {0, 0});
  }
}

bool Bpe::joins(uint32_t left, uint32_t right) const {
  if (left < kNear && right < kNear) return joined_[left * kNear + right];
  return joined_more_.find(left, right).rank != Merge::kNever;
}

TokenId Bpe::symbol_of(uint32_t character) const {
  if (character < ascii_ids_.size()) return ascii_ids_[character];
  const Merge found = character_ids_.find(0, character);
  return found.rank == Merge::kNever ? kNone : found.id;
}

// The bytes up to the first place that no merge joins across. A character without a token stays with its neighbours,
// whose symbols depend on it.
size_t Bpe::segment_bytes(std::string_view word) const {
  if (options_.bytes) {
    for (size_t i = 1; i < word.size(); ++i) {
      if (!joins(static_cast<unsigned char>(word[i - 1]), static_cast<unsigned char>(word[i]))) return i;
    }
    return word.size();
  }
  const char* at = word.data();
  const char* const end = at + word.size();
  uint32_t left = next_character(at);
  bool left_known = symbol_of(left) != kNone;
  while (at < end) {
    const char* const border = at;
    const uint32_t right = next_character(at);
    const bool known = symbol_of(right) != kNone;
    if (left_known && known && !joins(left, right)) return static_cast<size_t>(border - word.data());
    left = right;
    left_known = known;
  }
  return word.size();
}

void Bpe::first_symbols(std::string_view word, std::vector<TokenId>& symbols) const {
  symbols.clear();
  if (options_.bytes) {
    for (const char c : word) {
      const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
      if (id != kNone) {
        symbols.push_back(id);
      } else if (unk_id_ != kNone && !(options_.fuse_unk && !symbols.empty() && symbols.back() == kNone)) {
        symbols.push_back(kNone);  // unknown, to be told from a character that is the unk token itself
      }
    }
    std::replace(symbols.begin(), symbols.end(), kNone, unk_id_);
    return;
  }
  // As in `tokenizers`, an unknown character waits for the next known one; bytes of another do not end its waiting.
  bool waiting = false;
  for (const char* at = word.data(); at < word.data() + word.size();) {
    const char* const begin = at;
    const TokenId id = symbol_of(next_character(at));
    if (id != kNone) {
      if (waiting) symbols.push_back(unk_id_);
      waiting = false;
      symbols.push_back(id);
      continue;
    }
    if (options_.byte_fallback &&
        std::all_of(begin, at, [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] != kNone; })) {
      for (const char* c = begin; c < at; ++c) symbols.push_back(byte_ids_[static_cast<unsigned char>(*c)]);
      continue;
    }
    if (unk_id_ == kNone) continue;
    if (waiting && !options_.fuse_unk) symbols.push_back(unk_id_);
    waiting = true;
  }
  if (waiting) symbols.push_back(unk_id_);
}

void Bpe::encode_directly(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  first_symbols(word, scratch.symbols);
  if (scratch.symbols.size() <= kShort) {
    merge_short(merges_, scratch.symbols);
  } else {
    merge_long(merges_, scratch.symbols);
  }
  out.insert(out.end(), scratch.symbols.begin(), scratch.symbols.end());
}

void Bpe::encode_cached(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (word.size() > WordCache::kLongest) return encode_directly(word, scratch, out);
  const WordCache::Key key(word);
  if (scratch.cache.find(key, out)) return;
  const size_t before = out.size();
  const auto whole = options_.ignore_merges ? whole_.find(std::string(word)) : whole_.end();
  if (whole != whole_.end()) {
    out.push_back(whole->second);
  } else {
    encode_directly(word, scratch, out);
  }
  scratch.cache.put(key, out.data() + before, out.size() - before);
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (word.size() <= WordCache::kLongest) return encode_cached(word, scratch, out);
  if (options_.ignore_merges && word.size() <= longest_whole_) {
    if (const auto whole = whole_.find(std::string(word)); whole != whole_.end()) return out.push_back(whole->second);
  }
  while (!word.empty()) {
    const size_t bytes = segment_bytes(word);
    if (bytes > kLongestWord) {
      throw DataError(
          fmt::format("a word of {} bytes: expected at most {} without a place to split", bytes, kLongestWord));
    }
    // With ignore_merges the cache knows whole words only.
    if (options_.ignore_merges) {
      encode_directly(word.substr(0, bytes), scratch, out);
    } else {
      encode_cached(word.substr(0, bytes), scratch, out);
    }
    word.remove_prefix(bytes);
  }
}

}  // namespace siamese::text

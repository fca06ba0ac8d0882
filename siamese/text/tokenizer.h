// Hugging Face's tokenizer.json with a BPE model: text <-> ids, equal to the Python `tokenizers` library.
//
//   const auto tokenizer = text::Tokenizer::open("tokenizer.json");
//   text::Encoder encoder(tokenizer);                       // one for each thread: it remembers words
//   std::vector<text::TokenId> ids = encoder.encode("Hello");
//   tokenizer.decode(ids);
//
// text -> added tokens -> normalizer -> added tokens -> pre-tokenizer -> BPE -> post-processor -> ids -> decoder ->
// text. A part of a file that is not known here is refused by its name. `truncation` and `padding` are about batches
// and have no effect here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/text/added_tokens.h"
#include "siamese/text/bpe.h"
#include "siamese/text/decoder.h"
#include "siamese/text/normalizer.h"
#include "siamese/text/post_processor.h"
#include "siamese/text/pre_tokenizer.h"
#include "siamese/text/vocabulary.h"

namespace siamese::text {

enum class Special { added, left_out };  // what the post-processor puts around a text

class Tokenizer {
 public:
  // DataError naming the file and the part of it that is wrong or not known. A folder means its tokenizer.json.
  static Tokenizer open(const std::filesystem::path& path);
  // `name` is what errors call it.
  static Tokenizer parse(std::string_view json, const std::string& name);

  // One past the largest id, added tokens included: what a model's vocabulary has to hold.
  TokenId size() const;
  size_t tokens() const;  // how many there are
  size_t merges() const { return merges_; }

  // Added tokens included.
  std::optional<TokenId> id_of(std::string_view token) const;
  const std::string* token_of(TokenId id) const;
  const std::vector<AddedToken>& added() const { return added_; }

  // As `tokenizers` does: what is not UTF-8 comes out as U+FFFD. DataError for an id without a token.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;

  const PostProcessor& post_processor() const { return post_processor_; }
  const BpeOptions& options() const { return bpe_.options(); }
  // XXH3 of the file's bytes.
  uint64_t hash() const { return hash_; }

 private:
  friend class Encoder;
  friend class TokenizerReader;
  Tokenizer(Vocabulary vocabulary, Bpe bpe) : vocabulary_(std::move(vocabulary)), bpe_(std::move(bpe)) {}

  Vocabulary vocabulary_;
  Bpe bpe_;
  size_t merges_ = 0;
  std::vector<AddedToken> added_;       // by id
  AddedTokenFinder before_normalizer_;  // finds those that are not `normalized`
  AddedTokenFinder after_normalizer_;   // finds the others
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  PostProcessor post_processor_;
  Decoder decoder_;
  uint64_t hash_ = 0;
};

// One thread's encoder.
class Encoder : private PieceSink {
 public:
  // The tokenizer must outlive it.
  explicit Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // DataError when the text is not UTF-8 (with the byte), or one word of it is longer than 64 MiB.
  std::vector<TokenId> encode(std::string_view text, Special special = Special::added);
  // The same, appended.
  void append(std::string_view text, Special special, std::vector<TokenId>& out);

 private:
  void take(Piece piece) override { tokenizer_.bpe_.encode(piece.text, scratch_, *out_); }
  void normalized(std::string_view text, bool first);

  const Tokenizer& tokenizer_;
  Bpe::Scratch scratch_;
  std::string buffer_;
  std::vector<TokenId>* out_ = nullptr;
};

// The ids of every text, by so many threads (at least 1); in the order of the texts, the same at any number.
std::vector<std::vector<TokenId>> encode_all(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                                             Special special, int threads);

}  // namespace siamese::text

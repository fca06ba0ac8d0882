#include "siamese/text/tokenizer.h"

#include "fuzz/contract.h"

#include "siamese/text/train.h"

namespace siamese::fuzz {
namespace {

// Whatever the file says, its ids lie inside its vocabulary, twice the same, and decode.
void check_encoding(const text::Tokenizer& tokenizer, text::Encoder& encoder, std::string_view text) {
  const auto ids = encoder.encode(text);
  for (const text::TokenId id : ids) require(id < tokenizer.size(), "an id lies inside the vocabulary");
  require(encoder.encode(text) == ids, "a text encodes the same from the cache");
  tokenizer.decode(ids);
}

constexpr std::string_view kLlamaLike = R"json({"normalizer": {"type": "Sequence", "normalizers": [
 {"type": "NFKC"}, {"type": "Prepend", "prepend": "_"}, {"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"}]},
 "added_tokens": [{"id": 5, "content": "<s>", "lstrip": true, "rstrip": true, "special": true},
                  {"id": 6, "content": "ba", "single_word": true, "normalized": true}],
 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+(?!\\S)"},
   "behavior": "MergedWithNext", "invert": true}, {"type": "Punctuation"}, {"type": "Metaspace", "prepend_scheme": "first"}]},
 "decoder": {"type": "Sequence", "decoders": [{"type": "Metaspace"}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
 "model": {"type": "BPE", "unk_token": "?", "fuse_unk": true, "byte_fallback": true, "merges": ["a b", "ab a"],
 "vocab": {"a": 0, "b": 1, "ab": 2, "aba": 3, "?": 4, "<0xC3>": 7, "<0xA9>": 8}}})json";

const text::Tokenizer& byte_level() {
  static const text::Tokenizer tokenizer = [] {
    text::BpeTrainer trainer({.vocab = 300});
    trainer.add("the cat sat on the mat, the 123 mats \xC3\xA9\xC3\xA9");
    return text::Tokenizer::parse(trainer.finish(), "trained");
  }();
  return tokenizer;
}

}  // namespace

void check_tokenizer_file(Bytes bytes) {
  reads_or_refuses([&] {
    const auto tokenizer = text::Tokenizer::parse(text_of(bytes), "file");
    text::Encoder encoder(tokenizer);
    for (const std::string_view text :
         {"", "a", "Hello, it's 123 \xC3\xA9\n\n  x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b<s> <s>"}) {
      check_encoding(tokenizer, encoder, text);
    }
  });
}

void check_tokenizer_text(Bytes bytes) {
  static const text::Tokenizer llama_like = text::Tokenizer::parse(kLlamaLike, "file");
  static text::Encoder llama_encoder(llama_like);
  static text::Encoder encoder(byte_level());
  const std::string text(text_of(bytes));
  reads_or_refuses([&] { check_encoding(llama_like, llama_encoder, text); });
  reads_or_refuses([&] {
    check_encoding(byte_level(), encoder, text);
    require(byte_level().decode(encoder.encode(text)) == text, "bytes come back as they were");
  });
}

}  // namespace siamese::fuzz

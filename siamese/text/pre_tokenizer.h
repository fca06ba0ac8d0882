// How a tokenizer file splits text into words before BPE: ByteLevel, Split, Digits, Punctuation, Whitespace,
// WhitespaceSplit, Metaspace, in the order of the file. Any other step is refused by name.
//
// Words go from step to step as they are found, depth first, so nothing of the size of the text is kept.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace siamese::text {

struct Piece {
  std::string_view text;  // never empty
  bool first = false;     // it begins where the whole text does
};

// Takes words in their order.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void take(Piece piece) = 0;
};

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual void split(Piece piece, PieceSink& sink) const = 0;
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  // `value` may be null: a text is one word.
  PreTokenizer(const nlohmann::json* value, const std::string& where);

  void split(Piece piece, PieceSink& sink) const { split_from(0, piece, sink); }

  // The last step is ByteLevel: the words are handed out as bytes of the text, and it is up to BPE to read the tokens'
  // characters as bytes (BpeOptions::bytes).
  bool gives_bytes() const { return gives_bytes_; }
  // When BPE cannot: the words are handed out in GPT-2's alphabet.
  void give_characters();

 private:
  void split_from(size_t step, Piece piece, PieceSink& sink) const;

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool gives_bytes_ = false;
};

}  // namespace siamese::text

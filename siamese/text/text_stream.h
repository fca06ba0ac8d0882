// The text of ids that come one by one: as much of it as later ids cannot change, and never half a character.
//
//   text::TextStream stream(tokenizer, prompt);
//   stream.add(id);      // what is certain now; "" in the middle of a character
//   stream.finish();     // the rest
//
// All pieces together are decode(before + ids) without the text of `before`. A decoder may change the first token of a
// text, or join the bytes of several: so an id is decoded together with those of the last piece, whose text is then
// taken away.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "siamese/text/tokenizer.h"

namespace siamese::text {

class TextStream {
 public:
  // `before`: ids that the text follows. The tokenizer must outlive it.
  TextStream(const Tokenizer& tokenizer, std::span<const TokenId> before, bool skip_special = true);

  // An id without a token (a model may have more rows than its tokenizer) is U+FFFD.
  std::string add(TokenId id);
  std::string finish();

 private:
  std::string more() const;  // the text of the ids after `told_`
  std::string tell();        // the same, which is then told

  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::vector<TokenId> ids_;  // those of the last piece, and what is not told yet
  size_t told_ = 0;           // how many of them are
};

}  // namespace siamese::text

// Prompts to tokens and tokens to text, as a model was trained on them:
//   its tokenizer.json where it has one
//   else by data.source: characters of arithmetic, the bytes of text, or numbers ("15496 995")
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/models/config.h"
#include "siamese/text/stop_finder.h"

namespace siamese::text {
class Tokenizer;
}

namespace siamese::eval {

// The token that ends a text, as the files beside the tokenizer say or its own names tell; nullopt: nobody says.
std::optional<int64_t> known_end_of_text(const text::Tokenizer& tokenizer, const std::filesystem::path& file);

// The text of tokens that come one by one.
class TokenText {
 public:
  virtual ~TokenText() = default;
  virtual std::string add(int64_t token) = 0;  // what later tokens cannot change: whole characters
  virtual std::string finish() = 0;            // what was held back
};

class Words {
 public:
  virtual ~Words() = default;
  // `special`: with the tokens that the tokenizer puts around a text (<s>). UsageError or DataError when the text has
  // no tokens here: not UTF-8, a character that the data lack.
  virtual std::vector<int64_t> encode(std::string_view text, bool special) const = 0;
  // Of tokens that follow `prompt`.
  virtual std::unique_ptr<TokenText> text_after(const std::vector<int64_t>& prompt) const = 0;
  // A token as it stands alone, for lists of likely ones.
  virtual std::string token_text(int64_t token) const = 0;
  // Whether `encode` adds special tokens when nobody says: `siamese prepare` writes none into the token files that a
  // run of ours is trained on, a model from elsewhere has seen them.
  virtual bool special() const { return false; }
  // After it nothing follows: the end of a document or an answer.
  virtual std::optional<int64_t> end() const { return std::nullopt; }
  virtual bool is_text() const { return true; }  // false: numbers
};

// By data.source.
std::unique_ptr<Words> words_of_source(const data::DataConfig& data);
// Numbers, whatever the data are.
std::unique_ptr<Words> words_of_ids();
// `json`: the tokenizer's file; `path`: where it lies or was taken from, which errors name and whose
// tokenizer_config.json may name the last token of a text. DataError when it has more ids than model.vocab.
std::unique_ptr<Words> words_of_tokenizer(std::string_view json, const std::filesystem::path& path,
                                          const models::ModelConfig& model, const data::DataConfig& data);

// Why a continuation ended; `length`: max_tokens or the context.
enum class Finish { length, stop, end };

// One continuation as text: up to its end, or the first of some texts, which is left out.
class Continuation {
 public:
  // `words` must outlive it.
  Continuation(const Words& words, const std::vector<int64_t>& prompt, const std::vector<std::string>& stop);

  // What can be told after this token. Once `done`, no further one may come.
  std::string add(int64_t token);
  bool done() const { return finish_ != Finish::length; }
  // What was held back, when no further token comes.
  std::string rest();
  Finish finish() const { return finish_; }
  const std::vector<int64_t>& tokens() const { return tokens_; }  // without the last of a text

 private:
  std::optional<int64_t> end_;
  std::unique_ptr<TokenText> text_;
  text::StopFinder stop_;
  std::vector<int64_t> tokens_;
  Finish finish_ = Finish::length;
};

}  // namespace siamese::eval

template <>
struct siamese::EnumText<siamese::eval::Finish> {
  static constexpr EnumNames<eval::Finish, 3> names{
      {{eval::Finish::length, "length"}, {eval::Finish::stop, "stop"}, {eval::Finish::end, "end"}}};
};

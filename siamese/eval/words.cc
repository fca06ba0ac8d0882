#include "siamese/eval/words.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/data/codec.h"
#include "siamese/data/prepare.h"
#include "siamese/text/text_stream.h"
#include "siamese/text/tokenizer.h"

namespace siamese::eval {
namespace {

// Bytes, told as whole characters; what cannot become one, as it is.
class ByteText : public TokenText {
 public:
  explicit ByteText(const data::Codec& codec) : codec_(codec) {}

  std::string add(int64_t token) override {
    held_ += codec_.decode(std::span(&token, 1));
    size_t whole = 0;
    while (whole < held_.size()) {
      const std::string_view left = std::string_view(held_).substr(whole);
      const size_t length = utf8_length(left);
      if (length == 0 && may_become_character(left)) break;
      whole += std::max<size_t>(length, 1);
    }
    std::string out = held_.substr(0, whole);
    held_.erase(0, whole);
    return out;
  }
  std::string finish() override { return std::exchange(held_, ""); }

 private:
  // Whether some bytes after these make a character: the lowest and the highest that may follow are tried.
  static bool may_become_character(std::string_view bytes) {
    for (const char next : {'\x80', '\x90', '\x9F', '\xBF'}) {
      std::string longer(bytes);
      while (longer.size() < 4) {
        longer += next;
        if (utf8_length(longer) == longer.size()) return true;
      }
    }
    return false;
  }

  const data::Codec& codec_;
  std::string held_;
};

class IdText : public TokenText {
 public:
  std::string add(int64_t token) override { return (std::exchange(begun_, true) ? " " : "") + std::to_string(token); }
  std::string finish() override { return ""; }

 private:
  bool begun_ = false;
};

class CodecWords : public Words {
 public:
  CodecWords(std::unique_ptr<data::Codec> codec, bool arithmetic) : codec_(std::move(codec)), arithmetic_(arithmetic) {}

  std::vector<int64_t> encode(std::string_view text, bool) const override {
    std::vector<int64_t> tokens = codec_->encode(text);
    // Arithmetic samples begin with a line break and an answer ends with one.
    if (arithmetic_ && !text.starts_with("\n")) tokens.insert(tokens.begin(), *end());
    return tokens;
  }
  std::unique_ptr<TokenText> text_after(const std::vector<int64_t>&) const override {
    if (!is_text()) return std::make_unique<IdText>();
    return std::make_unique<ByteText>(*codec_);
  }
  std::string token_text(int64_t token) const override { return codec_->decode(std::span(&token, 1)); }
  std::optional<int64_t> end() const override {
    return arithmetic_ ? std::optional(codec_->encode("\n")[0]) : std::nullopt;
  }
  bool is_text() const override { return codec_->is_text(); }

 private:
  std::unique_ptr<data::Codec> codec_;
  bool arithmetic_;
};

text::TokenId narrowed(int64_t token) {
  constexpr int64_t kMost = std::numeric_limits<text::TokenId>::max();
  return token < 0 || token > kMost ? static_cast<text::TokenId>(kMost) : static_cast<text::TokenId>(token);
}

class TokenizerText : public TokenText {
 public:
  TokenizerText(const text::Tokenizer& tokenizer, const std::vector<text::TokenId>& before)
      : stream_(tokenizer, before) {}

  std::string add(int64_t token) override { return stream_.add(narrowed(token)); }
  std::string finish() override { return stream_.finish(); }

 private:
  text::TextStream stream_;
};

class TokenizerWords : public Words {
 public:
  TokenizerWords(text::Tokenizer tokenizer, std::optional<int64_t> end, bool special)
      : tokenizer_(std::move(tokenizer)), end_(end), special_(special) {}

  std::vector<int64_t> encode(std::string_view text, bool special) const override {
    const auto ids = text::Encoder(tokenizer_).encode(text, special ? text::Special::added : text::Special::left_out);
    return {ids.begin(), ids.end()};
  }
  std::unique_ptr<TokenText> text_after(const std::vector<int64_t>& prompt) const override {
    std::vector<text::TokenId> before;
    for (const int64_t token : prompt) before.push_back(narrowed(token));
    return std::make_unique<TokenizerText>(tokenizer_, before);
  }
  std::string token_text(int64_t token) const override {
    const text::TokenId id = narrowed(token);
    return tokenizer_.token_of(id) == nullptr ? std::string(data::kReplacement) : tokenizer_.decode(std::span(&id, 1));
  }
  std::optional<int64_t> end() const override { return end_; }
  bool special() const override { return special_; }

 private:
  text::Tokenizer tokenizer_;
  std::optional<int64_t> end_;
  bool special_;
};

}  // namespace

std::optional<int64_t> known_end_of_text(const text::Tokenizer& tokenizer, const std::filesystem::path& file) {
  try {
    return data::end_of_text(tokenizer, file, "");
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::unique_ptr<Words> words_of_source(const data::DataConfig& data) {
  return std::make_unique<CodecWords>(data::make_codec(data), data.source == data::Source::arithmetic);
}

std::unique_ptr<Words> words_of_ids() {
  data::DataConfig numbers;
  numbers.source = data::Source::tokens;
  return words_of_source(numbers);
}

std::unique_ptr<Words> words_of_tokenizer(std::string_view json, const std::filesystem::path& path,
                                          const models::ModelConfig& model, const data::DataConfig& data) {
  text::Tokenizer tokenizer = text::Tokenizer::parse(json, path.string());
  if (static_cast<int64_t>(tokenizer.size()) > model.vocab) {
    throw DataError(
        fmt::format("{}: has token ids up to {}, but the model has {} (model.vocab): they do not belong "
                    "together",
                    path.string(), tokenizer.size() - 1, model.vocab));
  }
  const auto end = known_end_of_text(tokenizer, path);
  return std::make_unique<TokenizerWords>(std::move(tokenizer), end, data.source != data::Source::tokens);
}

Continuation::Continuation(const Words& words, const std::vector<int64_t>& prompt, const std::vector<std::string>& stop)
    : end_(words.end()), text_(words.text_after(prompt)), stop_(stop) {}

std::string Continuation::add(int64_t token) {
  SIAMESE_INVARIANT(!done());
  if (token == end_) {
    finish_ = Finish::end;
    return "";
  }
  tokens_.push_back(token);
  std::string text = stop_.add(text_->add(token));
  if (stop_.found()) finish_ = Finish::stop;
  return text;
}

std::string Continuation::rest() {
  if (finish_ == Finish::stop) return "";
  std::string text = stop_.add(text_->finish());
  if (stop_.found()) {
    finish_ = Finish::stop;
  } else {
    text += stop_.finish();
  }
  return text;
}

}  // namespace siamese::eval

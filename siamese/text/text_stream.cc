#include "siamese/text/text_stream.h"

#include <algorithm>

namespace siamese::text {
namespace {

constexpr std::string_view kUnreadable = "\xEF\xBF\xBD";  // U+FFFD
constexpr size_t kBefore = 6;                             // ids of the prompt that the first piece is decoded with
constexpr size_t kMostHeld = 64;                          // a character has at most four bytes: this is none

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const TokenId> before, bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special) {
  auto begin = before.end() - static_cast<std::ptrdiff_t>(std::min(before.size(), kBefore));
  for (auto id = begin; id != before.end(); ++id) {
    if (tokenizer.token_of(*id) == nullptr) begin = id + 1;
  }
  ids_.assign(begin, before.end());
  told_ = ids_.size();
}

std::string TextStream::more() const {
  const std::string all = tokenizer_.decode(ids_, skip_special_);
  if (told_ == 0) return all;
  const std::string before = tokenizer_.decode(std::span(ids_).first(told_), skip_special_);
  if (all.starts_with(before)) return all.substr(before.size());
  // The new ids changed how the last ones read: they complete a character whose first bytes were already told as
  // U+FFFD. The new ones are read alone.
  return tokenizer_.decode(std::span(ids_).subspan(told_), skip_special_);
}

std::string TextStream::tell() {
  std::string text = more();
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(told_));
  told_ = ids_.size();
  return text;
}

std::string TextStream::add(TokenId id) {
  if (tokenizer_.token_of(id) == nullptr) {
    std::string text = finish() + std::string(kUnreadable);
    ids_.clear();
    told_ = 0;
    return text;
  }
  ids_.push_back(id);
  const std::string text = more();
  if (text.empty()) {  // a token that is left out, or a space that begins the text: still what the next ones follow
    told_ = ids_.size();
    return "";
  }
  // The bytes of the next ids may complete a character.
  const bool half = text.ends_with(kUnreadable) && ids_.size() - told_ < kMostHeld;
  return half ? "" : tell();
}

std::string TextStream::finish() { return told_ == ids_.size() ? "" : tell(); }

}  // namespace siamese::text

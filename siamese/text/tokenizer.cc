#include "siamese/text/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"

namespace siamese::text {
namespace {

const AddedToken* added_with(const std::vector<AddedToken>& added, TokenId id) {
  const auto found = std::lower_bound(added.begin(), added.end(), id,
                                      [](const AddedToken& token, TokenId wanted) { return token.id < wanted; });
  return found != added.end() && found->id == id ? &*found : nullptr;
}

}  // namespace

TokenId Tokenizer::size() const {
  return std::max(vocabulary_.size(), added_.empty() ? TokenId{0} : added_.back().id + 1);
}

size_t Tokenizer::tokens() const {
  return vocabulary_.count() + static_cast<size_t>(std::count_if(added_.begin(), added_.end(), [&](const auto& token) {
           return vocabulary_.token_of(token.id) == nullptr;
         }));
}

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  for (const AddedToken& added : added_) {
    if (added.content == token) return added.id;
  }
  return vocabulary_.id_of(token);
}

const std::string* Tokenizer::token_of(TokenId id) const {
  const AddedToken* const added = added_with(added_, id);
  return added != nullptr ? &added->content : vocabulary_.token_of(id);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string* const token = token_of(ids[i]);
    if (token == nullptr) {
      throw DataError(
          fmt::format("id {} (number {}) is no token: the vocabulary ends at {}", ids[i], i + 1, size() - 1));
    }
    const AddedToken* const added = added_with(added_, ids[i]);
    if (skip_special && added != nullptr && added->special) continue;
    tokens.push_back(added != nullptr ? added->decoded : *token);
  }
  return decoder_.decode(std::move(tokens));
}

std::vector<TokenId> Encoder::encode(std::string_view text, Special special) {
  std::vector<TokenId> ids;
  append(text, special, ids);
  return ids;
}

void Encoder::append(std::string_view text, Special special, std::vector<TokenId>& out) {
  if (const auto wrong = first_invalid_utf8(std::as_bytes(std::span(text)))) {
    throw DataError(fmt::format("expected UTF-8 text, got byte 0x{:02x} at offset {}",
                                static_cast<unsigned char>(text[*wrong]), *wrong));
  }
  out_ = &out;
  const auto put = [&](const std::vector<TokenId>& ids) {
    if (special == Special::added) out.insert(out.end(), ids.begin(), ids.end());
  };
  put(tokenizer_.post_processor_.before());
  tokenizer_.before_normalizer_.split(text, [&](const AddedToken* token, size_t begin, size_t end) {
    if (token != nullptr) return out.push_back(token->id);
    normalized(text.substr(begin, end - begin), begin == 0);
  });
  put(tokenizer_.post_processor_.after());
}

void Encoder::normalized(std::string_view text, bool first) {
  const std::string_view ready = tokenizer_.normalizer_.apply(text, buffer_);
  tokenizer_.after_normalizer_.split(ready, [&](const AddedToken* token, size_t begin, size_t end) {
    if (token != nullptr) return out_->push_back(token->id);
    tokenizer_.pre_tokenizer_.split({ready.substr(begin, end - begin), first && begin == 0}, *this);
  });
}

std::vector<std::vector<TokenId>> encode_all(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                                             Special special, int threads) {
  std::vector<std::vector<TokenId>> ids(texts.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  size_t failed_at = texts.size();  // of several, the first in the order of the texts is told
  const auto work = [&] {
    size_t at = 0;
    try {
      Encoder encoder(tokenizer);
      while ((at = next.fetch_add(1)) < texts.size()) {
        std::vector<TokenId> made;  // of its own: its neighbours in `ids` share a cache line with it
        encoder.append(texts[at], special, made);
        ids[at] = std::move(made);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (at < failed_at || !failed) {
        failed = std::current_exception();
        failed_at = at;
      }
    }
  };
  std::vector<std::thread> others;
  const auto wanted = std::min(static_cast<size_t>(std::max(threads, 1)), texts.size());
  for (size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (failed) std::rethrow_exception(failed);
  return ids;
}

}  // namespace siamese::text

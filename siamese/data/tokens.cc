#include "siamese/data/tokens.h"

#include <charconv>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/data/document_index.h"
#include "siamese/data/windows.h"
#include "siamese/io/token_file.h"

namespace siamese::data {
namespace {

class TokenIdCodec : public Codec {
 public:
  int64_t vocab() const override { return 0; }
  bool is_text() const override { return false; }

  std::vector<int64_t> encode(std::string_view text) const override {
    constexpr std::string_view kBetween = " \t\r\n,";
    std::vector<int64_t> ids;
    size_t at = text.find_first_not_of(kBetween);
    while (at != std::string_view::npos) {
      const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
      const std::string_view word = text.substr(at, end - at);
      int64_t id = 0;
      const auto result = std::from_chars(word.data(), word.data() + word.size(), id);
      if (result.ec != std::errc{} || result.ptr != word.data() + word.size() || id < 0) {
        throw UsageError(
            fmt::format("expected token ids (whole numbers >= 0), got '{}' as word {}", word, ids.size() + 1));
      }
      ids.push_back(id);
      at = text.find_first_not_of(kBetween, end);
    }
    return ids;
  }

  std::string decode(std::span<const int64_t> ids) const override { return fmt::format("{}", fmt::join(ids, " ")); }
};

class Shard : public TokenSource {
 public:
  Shard(io::TokenFile file, std::optional<DocumentIndex> documents)
      : file_(std::move(file)), documents_(std::move(documents)) {}
  int64_t size() const override { return file_.size(); }
  void read(int64_t begin, std::span<int64_t> out) const override { file_.read(begin, out); }
  std::optional<std::vector<int64_t>> documents_between(int64_t begin, int64_t end) const override {
    if (!documents_) return std::nullopt;
    return documents_->begins_between(begin, end);
  }

 private:
  io::TokenFile file_;
  std::optional<DocumentIndex> documents_;
};

}  // namespace

std::unique_ptr<Codec> token_id_codec() { return std::make_unique<TokenIdCodec>(); }

std::unique_ptr<Dataset> token_dataset(const DataConfig& config, Split split, int64_t context, int64_t vocab,
                                       uint64_t seed) {
  const FileKind kind{[&](const auto& path) {
                        io::TokenFile file = io::TokenFile::open(path, config.format, vocab);
                        std::optional<DocumentIndex> documents;
                        if (config.pack == Pack::documents) documents.emplace(path, file.size());
                        return std::make_unique<Shard>(std::move(file), std::move(documents));
                      },
                      "tokens", vocab};
  return open_windows(config, split, context, seed, kind);
}

}  // namespace siamese::data

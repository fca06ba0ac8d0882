#include "siamese/data/prepare.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/random.h"
#include "siamese/data/files.h"
#include "siamese/io/aside.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"

namespace siamese::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBatchDocuments = size_t{1} << 16;
constexpr auto kNoteEvery = std::chrono::seconds(5);

fs::path tokenizer_file(const fs::path& path) { return is_folder(path) ? path / "tokenizer.json" : path; }

// A document on its way: read, then encoded by one of the threads.
struct Item {
  RawDocument raw;
  std::vector<text::TokenId> ids;
  uint64_t text_bytes = 0;
  bool held_out = false;
  std::string why;  // it is bad
};

bool is_held_out(std::string_view text, double fraction) {
  const uint64_t bits = mix_bits(io::checksum(text)) >> 11;
  return static_cast<double>(bits) * 0x1p-53 < fraction;
}

class Preparation {
 public:
  Preparation(const PrepareOptions& options, PrepareObserver& observer)
      : options_(options),
        observer_(observer),
        tokenizer_(text::Tokenizer::open(options.tokenizer)),
        eos_(end_of_text(tokenizer_, tokenizer_file(options.tokenizer), options.eos)),
        files_(expand_files("INPUT", options.inputs)) {
    for (int i = 0; i < std::max(options.threads, 1); ++i) {
      encoders_.push_back(std::make_unique<text::Encoder>(tokenizer_));
    }
  }

  Manifest run() {
    const std::string request = request_text();
    io::make_directory(options_.out);
    const io::DirectoryLock lock(options_.out);
    begin(request);
    if (manifest_.complete) return manifest_;
    io::write_file_atomic(options_.out / "tokenizer.json", io::read_file(tokenizer_file(options_.tokenizer)));
    const bool wide = tokenizer_.size() > 65536;
    for (size_t i = 0; i < sides_.size(); ++i) {
      sides_[i] =
          std::make_unique<ShardWriter>(options_.out, kSideNames[i], wide, options_.shard_tokens, manifest_.sides[i]);
    }
    for (size_t i = 0; i < manifest_.source; ++i) earlier_bytes_ += bytes_[i];
    while (manifest_.source < files_.size()) {
      if (!read_source(files_[manifest_.source])) return manifest_;
      earlier_bytes_ += bytes_[manifest_.source];
      ++manifest_.source;
      manifest_.done_in_source = 0;
      if (stopped_ && manifest_.source < files_.size()) {
        note();
        return manifest_;
      }
    }
    for (const auto& side : sides_) side->finish();
    manifest_.complete = true;
    note();
    return manifest_;
  }

 private:
  // All that decides the result.
  std::string request_text() {
    nlohmann::json sources = nlohmann::json::array();
    for (const fs::path& file : files_) {
      const io::FileHash content = io::hash_file(file, uint64_t{64} << 20);
      bytes_.push_back(content.bytes);
      total_bytes_ += content.bytes;
      sources.push_back({{"path", file.string()}, {"bytes", content.bytes}, {"hash", io::checksum_text(content.hash)}});
    }
    const std::string* const eos = tokenizer_.token_of(eos_);
    return io::json_text(
        nlohmann::json{{"tokenizer", {{"hash", io::checksum_text(tokenizer_.hash())}, {"vocab", tokenizer_.size()}}},
                       {"eos", {{"id", eos_}, {"token", eos == nullptr ? "" : *eos}}},
                       {"documents",
                        {{"format", enum_text(options_.documents.format)},
                         {"field", options_.documents.field},
                         {"lines", options_.documents.lines},
                         {"separator", options_.documents.separator}}},
                       {"val_fraction", options_.val_fraction},
                       {"shard_tokens", options_.shard_tokens},
                       {"dtype", tokenizer_.size() > 65536 ? "uint32" : "uint16"},
                       {"sources", sources}});
  }

  void begin(const std::string& request) {
    const fs::path file = options_.out / "manifest.json";
    if (is_there(file)) {
      manifest_ = read_manifest(file);
      if (manifest_.request != request) {
        throw UsageError(
            fmt::format("--out: '{}' was prepared from other files or with other options (see the request "
                        "in its manifest.json): expected the same, or another folder",
                        options_.out.string()));
      }
      return;
    }
    for (const fs::path& entry : folder_entries(options_.out)) {
      const std::string name = entry.filename().string();
      if (io::is_aside_name(name)) continue;  // a first manifest whose writer was killed
      throw UsageError(fmt::format("--out: expected an empty or new folder, got '{}' with {} and no manifest.json",
                                   options_.out.string(), io::in_quotes(name)));
    }
    manifest_.request = request;
    manifest_.vocab = tokenizer_.size();
    note();
  }

  // False when it was stopped before the end of the file.
  bool read_source(const fs::path& file) {
    DocumentReader reader(file, options_.documents);
    RawDocument raw;
    for (uint64_t i = 0; i < manifest_.done_in_source; ++i) {
      if (!reader.next(raw)) throw DataError(file.string() + ": is shorter than it was");
    }
    bool more = true;
    while (more) {
      items_.clear();
      size_t bytes = 0;
      while (bytes < options_.batch_bytes && items_.size() < kBatchDocuments && (more = reader.next(raw))) {
        bytes += raw.bytes.size();
        items_.emplace_back();
        items_.back().raw = std::move(raw);
      }
      encode_items();
      for (const Item& item : items_) write(item, file);
      manifest_.done_in_source += items_.size();
      stopped_ = observer_.stop();
      observer_.progressed(counts(reader.consumed()));
      const bool ends_here = stopped_ && more;
      if (ends_here || std::chrono::steady_clock::now() - noted_ > kNoteEvery) note();
      if (ends_here) return false;
    }
    return true;
  }

  void encode_items() {
    std::atomic<size_t> next{0};
    std::vector<std::exception_ptr> failed(encoders_.size());
    const auto work = [&](size_t worker) {
      try {
        for (size_t at; (at = next.fetch_add(1)) < items_.size();) encode_item(*encoders_[worker], items_[at]);
      } catch (...) {
        failed[worker] = std::current_exception();
      }
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < encoders_.size(); ++i) others.emplace_back(work, i);
    work(0);
    for (std::thread& thread : others) thread.join();
    for (const auto& error : failed) {
      if (error) std::rethrow_exception(error);
    }
  }

  void encode_item(text::Encoder& encoder, Item& item) const {
    try {
      const std::string text = text_of(item.raw, options_.documents.field);
      item.raw.bytes.clear();
      if (text.empty()) return;
      item.text_bytes = text.size();
      item.held_out = is_held_out(text, options_.val_fraction);
      encoder.append(text, text::Special::left_out, item.ids);
      item.ids.push_back(eos_);
    } catch (const DataError& error) {
      item.why = error.what();
    }
  }

  void write(const Item& item, const fs::path& file) {
    if (!item.why.empty()) {
      if (options_.strict) {
        throw DataError(fmt::format("{}: line {}: {}", file.string(), item.raw.line, item.why));
      }
      ++manifest_.bad_count;
      if (manifest_.bad.size() < kMostBadLines) manifest_.bad.push_back({file.string(), item.raw.line, item.why});
    } else if (item.ids.empty()) {
      ++manifest_.empty;
    } else {
      sides_[item.held_out ? 1 : 0]->append(item.ids, item.text_bytes);
    }
  }

  // What stands in the shards is on the disk before the manifest says so.
  void note() {
    for (const auto& side : sides_) {
      if (side && !manifest_.complete) side->sync();
    }
    io::write_file_atomic(options_.out / "manifest.json", manifest_text(manifest_));
    noted_ = std::chrono::steady_clock::now();
  }

  PrepareCounts counts(uint64_t in_source) const {
    PrepareCounts counts{.bytes = earlier_bytes_ + in_source, .total_bytes = total_bytes_, .bad = manifest_.bad_count};
    for (const SideCounts& side : manifest_.sides) {
      counts.tokens += side.tokens;
      counts.documents += side.documents;
    }
    return counts;
  }

  const PrepareOptions& options_;
  PrepareObserver& observer_;
  text::Tokenizer tokenizer_;
  text::TokenId eos_;
  std::vector<fs::path> files_;
  std::vector<uint64_t> bytes_;  // of each file
  uint64_t total_bytes_ = 0;
  uint64_t earlier_bytes_ = 0;
  std::vector<std::unique_ptr<text::Encoder>> encoders_;
  Manifest manifest_;
  std::array<std::unique_ptr<ShardWriter>, 2> sides_;
  std::vector<Item> items_;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point noted_;
};

}  // namespace

text::TokenId end_of_text(const text::Tokenizer& tokenizer, const fs::path& file, const std::string& named) {
  if (!named.empty()) {
    if (const auto id = tokenizer.id_of(named)) return *id;
    throw UsageError(fmt::format("--eos: {} is no token of '{}'", io::in_quotes(named), file.string()));
  }
  const fs::path config = file.parent_path() / "tokenizer_config.json";
  if (is_file(config)) {
    const nlohmann::json value = io::read_json(io::read_file(config), config.string());
    auto eos = value.is_object() && value.contains("eos_token") ? value["eos_token"] : nlohmann::json();
    if (eos.is_object() && eos.contains("content")) eos = nlohmann::json(eos["content"]);
    const auto id = eos.is_string() ? tokenizer.id_of(eos.get<std::string>()) : std::nullopt;
    if (id) return *id;
  }
  for (const char* const usual : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
    if (const auto id = tokenizer.id_of(usual)) return *id;
  }
  throw UsageError(fmt::format("--eos: '{}' does not tell which token ends a document: name one", file.string()));
}

Manifest prepare(const PrepareOptions& options, PrepareObserver& observer) {
  return Preparation(options, observer).run();
}

}  // namespace siamese::data

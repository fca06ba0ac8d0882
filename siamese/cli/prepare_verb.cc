#include <cstdio>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/progress_line.h"
#include "siamese/cli/signals.h"
#include "siamese/cli/verbs.h"
#include "siamese/data/prepare.h"

namespace siamese::cli {
namespace {

class PrepareProgress : public data::PrepareObserver {
 public:
  void progressed(const data::PrepareCounts& counts) override {
    if (first_bytes_ == kNone) first_bytes_ = counts.bytes;
    if (!line_.due()) return;
    const double rate = static_cast<double>(counts.bytes - first_bytes_) / line_.seconds();
    const double left = rate > 0 ? static_cast<double>(counts.total_bytes - counts.bytes) / rate : 0;
    line_.show(fmt::format("prepare: {:.1f} of {:.1f} MB, {} documents, {} tokens, {:.1f} MB/s, {:.0f} s left",
                           static_cast<double>(counts.bytes) / 1e6, static_cast<double>(counts.total_bytes) / 1e6,
                           counts.documents, counts.tokens, rate / 1e6, left));
  }
  bool stop() override { return caught_signal() != 0; }
  void clear() { line_.clear(); }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  ProgressLine line_;
  uint64_t first_bytes_ = kNone;
};

void show_prepared(const data::Manifest& manifest, const data::PrepareOptions& options) {
  for (size_t i = 0; i < manifest.sides.size(); ++i) {
    const data::SideCounts& side = manifest.sides[i];
    std::printf("%s\n", fmt::format("{:<6} {} documents, {} tokens, {} bytes of text, {} shards", data::kSideNames[i],
                                    side.documents, side.tokens, side.bytes, side.shards.size())
                            .c_str());
  }
  if (manifest.empty > 0) std::printf("empty  %llu documents\n", static_cast<unsigned long long>(manifest.empty));
  if (manifest.bad_count > 0) {
    constexpr size_t kShown = 5;
    std::fprintf(stderr, "prepare: %llu bad lines were left out (manifest.json names the first %zu):\n",
                 static_cast<unsigned long long>(manifest.bad_count), manifest.bad.size());
    for (size_t i = 0; i < manifest.bad.size() && i < kShown; ++i) {
      const data::BadLine& line = manifest.bad[i];
      std::fprintf(stderr, "prepare:   %s\n",
                   printable(fmt::format("{}: line {}: {}", line.file, line.line, line.why), 400).c_str());
    }
  }
  const std::string out = options.out.string();
  if (manifest.sides[1].tokens == 0) {
    std::printf("train with: data.source=tokens data.train=[%s/train] model.vocab=%llu\n", out.c_str(),
                static_cast<unsigned long long>(manifest.vocab));
  } else {
    std::printf("train with: data.source=tokens data.train=[%s/train] data.val=[%s/val] model.vocab=%llu\n",
                out.c_str(), out.c_str(), static_cast<unsigned long long>(manifest.vocab));
  }
}

}  // namespace

void add_prepare(CLI::App& app, int& exit_code) {
  auto* const verb = app.add_subcommand("prepare", "Text files to shards of tokens that a run trains on");
  const auto options = std::make_shared<data::PrepareOptions>();
  const auto format = std::make_shared<std::string>("auto");
  options->threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  verb->add_option("INPUT", options->inputs, "Files, folders or globs: text, JSON Lines; also .gz and .zst")
      ->required();
  verb->add_option("--tokenizer", options->tokenizer, "tokenizer.json, or a folder that has one")->required();
  verb->add_option("-o,--out", options->out, "Folder to write; one that is not finished is gone on with")->required();
  verb->add_option("--format", *format, "auto: JSON Lines by the names .jsonl, .ndjson, .json; else text")
      ->check(CLI::IsMember(enum_choices<data::DocumentFormat>()))
      ->capture_default_str();
  verb->add_option("--field", options->documents.field, "Of JSON Lines: the field that has the text")
      ->capture_default_str();
  verb->add_flag("--lines", options->documents.lines, "Of other text: every line is a document, not the whole file");
  verb->add_option("--separator", options->documents.separator, "Of other text: a line that stands between documents");
  verb->add_option("--eos", options->eos,
                   "The token after each document; else tokenizer_config.json or a usual name tells");
  verb->add_option("--val-fraction", options->val_fraction, "Share of documents held out, by a hash of their text")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--shard-tokens", options->shard_tokens, "A shard has at most so many, or one document")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Encoding threads; the result is the same at any number")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_flag("--strict", options->strict, "The first bad line ends it (exit code 3)");
  verb->footer("Example: siamese prepare corpus/*.jsonl.zst --tokenizer tokenizer.json --out data/corpus");
  verb->callback([options, format, &exit_code] {
    options->documents.format = *enum_from_text<data::DocumentFormat>(*format);
    catch_signals();
    PrepareProgress progress;
    const data::Manifest manifest = data::prepare(*options, progress);
    progress.clear();
    if (!manifest.complete) {
      std::fprintf(stderr, "prepare: stopped; the same command goes on from here\n");
      exit_code = 128 + caught_signal();
      return;
    }
    show_prepared(manifest, *options);
  });
}

}  // namespace siamese::cli

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/verbs.h"
#include "siamese/data/files.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/line_reader.h"
#include "siamese/io/result_file.h"
#include "siamese/io/strict_json.h"
#include "siamese/text/id_list.h"
#include "siamese/text/tokenizer.h"
#include "siamese/text/train.h"

namespace siamese::cli {
namespace {

constexpr size_t kLongestText = size_t{1} << 30;
constexpr size_t kBatchBytes = size_t{8} << 20;

struct TokenizerArguments {
  std::string tokenizer;
  std::vector<std::string> files;
  bool lines = false;
  bool json_lines = false;
  bool no_special = false;
  bool skip_special = false;
  bool json = false;
  int threads = 1;
  int rounds = 3;
  text::TrainOptions train;
  std::string split = "cl100k";
  std::vector<std::string> special;
};

void write_out(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Each input with its name: the files, or standard input when there are none.
template <class Use>
void each_input(const std::vector<std::string>& files, Use use) {
  if (files.empty()) return use(*io::standard_input(), std::string("standard input"));
  for (const std::string& file : files) {
    if (file == "-") {
      use(*io::standard_input(), std::string("standard input"));
    } else {
      use(*io::open_bytes(file), file);
    }
  }
}

// A line of the input, for errors: "file: line 3".
std::string line_name(const std::string& file, uint64_t line) { return fmt::format("{}: line {}", file, line); }

// Calls `use(lines, number of the first)` with batches of lines.
template <class Use>
void each_batch(io::ByteStream& stream, const std::string& name, Use use) {
  io::LineReader reader(stream, kLongestText);
  std::vector<std::string> lines;
  std::string line;
  size_t bytes = 0;
  while (true) {
    const io::LineKind kind = reader.next(line);
    if (kind == io::LineKind::too_long) {
      throw DataError(fmt::format("{}: expected at most {} bytes", line_name(name, reader.lines()), kLongestText));
    }
    if (kind == io::LineKind::line) {
      bytes += line.size();
      lines.push_back(line);
      if (bytes < kBatchBytes) continue;
    }
    use(lines, reader.lines() - lines.size() + 1);
    if (kind == io::LineKind::end) return;
    lines.clear();
    bytes = 0;
  }
}

void expect_utf8(std::string_view text, const std::string& name) {
  if (const auto wrong = first_invalid_utf8(std::as_bytes(std::span(text)))) {
    throw DataError(fmt::format("{}: expected UTF-8 text, got byte 0x{:02x} at offset {}", name,
                                static_cast<unsigned char>(text[*wrong]), *wrong));
  }
}

std::string json_string(const std::string& line, const std::string& name) {
  const nlohmann::json value = io::read_json(line, name);
  if (!value.is_string()) throw DataError(name + ": expected a JSON string");
  return value.get<std::string>();
}

void encode_text(const TokenizerArguments& arguments) {
  const auto tokenizer = text::Tokenizer::open(arguments.tokenizer);
  const auto special = arguments.no_special ? text::Special::left_out : text::Special::added;
  std::string out;
  each_input(arguments.files, [&](io::ByteStream& stream, const std::string& name) {
    if (!arguments.lines && !arguments.json_lines) {
      const std::string all = io::read_all(stream, kLongestText, name);
      expect_utf8(all, name);
      out.clear();
      text::append_ids(out, text::Encoder(tokenizer).encode(all, special));
      write_out(out += '\n');
      return;
    }
    each_batch(stream, name, [&](std::vector<std::string>& lines, uint64_t first) {
      for (size_t i = 0; i < lines.size(); ++i) {
        expect_utf8(lines[i], line_name(name, first + i));
        if (arguments.json_lines) lines[i] = json_string(lines[i], line_name(name, first + i));
      }
      const std::vector<std::string_view> texts(lines.begin(), lines.end());
      out.clear();
      for (const auto& ids : text::encode_all(tokenizer, texts, special, arguments.threads)) {
        text::append_ids(out, ids);
        out += '\n';
      }
      write_out(out);
    });
  });
}

void decode_ids(const TokenizerArguments& arguments) {
  const auto tokenizer = text::Tokenizer::open(arguments.tokenizer);
  each_input(arguments.files, [&](io::ByteStream& stream, const std::string& name) {
    each_batch(stream, name, [&](const std::vector<std::string>& lines, uint64_t first) {
      for (size_t i = 0; i < lines.size(); ++i) {
        const std::string where = line_name(name, first + i);
        const auto ids = text::parse_ids(lines[i], where);
        try {
          const std::string text = tokenizer.decode(ids, arguments.skip_special);
          write_out(arguments.json_lines ? io::json_text(nlohmann::json(text)) + "\n" : text);
        } catch (const DataError& error) {
          throw DataError(where + ": " + error.what());
        }
        if (arguments.lines) write_out("\n");
      }
    });
  });
}

void show_tokenizer(const TokenizerArguments& arguments) {
  const auto tokenizer = text::Tokenizer::open(arguments.tokenizer);
  const auto special = std::count_if(tokenizer.added().begin(), tokenizer.added().end(),
                                     [](const text::AddedToken& token) { return token.special; });
  const text::BpeOptions& options = tokenizer.options();
  const std::string kind = options.bytes ? "bytes" : options.byte_fallback ? "characters, else bytes" : "characters";
  std::vector<text::TokenId> before = tokenizer.post_processor().before();
  std::vector<text::TokenId> after = tokenizer.post_processor().after();
  if (arguments.json) {
    nlohmann::json value{{"vocab", tokenizer.size()},
                         {"tokens", tokenizer.tokens()},
                         {"merges", tokenizer.merges()},
                         {"added", tokenizer.added().size()},
                         {"special", special},
                         {"symbols", kind},
                         {"before", before},
                         {"after", after},
                         {"hash", io::checksum_text(tokenizer.hash())}};
    write_out(io::json_text(value) + "\n");
    return;
  }
  const auto names = [&](const std::vector<text::TokenId>& ids) {
    std::string all;
    for (const text::TokenId id : ids) {
      const std::string* const token = tokenizer.token_of(id);
      all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", token == nullptr ? "?" : printable(*token, 80), id);
    }
    return all.empty() ? "nothing" : all;
  };
  write_out(
      fmt::format("vocab     {} (one past the largest id: model.vocab must be at least this)\n", tokenizer.size()));
  write_out(fmt::format("tokens    {}, of them {} added, {} of these special\n", tokenizer.tokens(),
                        tokenizer.added().size(), special));
  write_out(fmt::format("BPE       of {}, {} merges{}\n", kind, tokenizer.merges(),
                        options.ignore_merges ? ", words that are tokens first" : ""));
  write_out(fmt::format("around    {} before a text, {} after it\n", names(before), names(after)));
  write_out(fmt::format("hash      {}\n", io::checksum_text(tokenizer.hash())));
  for (size_t i = 0; i < tokenizer.added().size() && i < 20; ++i) {
    const text::AddedToken& token = tokenizer.added()[i];
    write_out(fmt::format("{:<9} {:>6} {}\n", i == 0 ? "added" : "", token.id, printable(token.content, 80)));
  }
  if (tokenizer.added().size() > 20) write_out(fmt::format("{:<9} ... {} more\n", "", tokenizer.added().size() - 20));
}

// MB/s of encoding alone, by the clock on the wall and by the processor's, best of some rounds: for
// benchmarks/tokenizer.py. On a machine that others use too, the latter tells more.
void time_encoding(const TokenizerArguments& arguments) {
  const auto tokenizer = text::Tokenizer::open(arguments.tokenizer);
  std::vector<std::string> texts;
  size_t bytes = 0;
  each_input(arguments.files, [&](io::ByteStream& stream, const std::string& name) {
    each_batch(stream, name, [&](const std::vector<std::string>& lines, uint64_t first) {
      for (size_t i = 0; i < lines.size(); ++i) {
        texts.push_back(json_string(lines[i], line_name(name, first + i)));
        bytes += texts.back().size();
      }
    });
  });
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  double best = 0;
  double best_of_processor = 0;
  size_t tokens = 0;
  for (int round = 0; round < arguments.rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t processor = std::clock();
    const auto all = text::encode_all(tokenizer, views, text::Special::left_out, arguments.threads);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, static_cast<double>(bytes) / 1e6 / seconds);
    const double used = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
    best_of_processor = std::max(best_of_processor, static_cast<double>(bytes) / 1e6 / used);
    tokens = 0;
    for (const auto& ids : all) tokens += ids.size();
  }
  write_out(fmt::format("{:.2f} MB/s, {:.2f} MB per second of processor time, {} bytes, {} tokens, {} threads\n", best,
                        best_of_processor, bytes, tokens, arguments.threads));
}

void train_tokenizer(TokenizerArguments& arguments) {
  const auto split = enum_from_text<text::Scan>(arguments.split);
  arguments.train.split = *split;  // checked when it was parsed
  if (!arguments.special.empty()) arguments.train.special = arguments.special;
  io::check_result_file(arguments.tokenizer, "tokenizer.json", [](const std::filesystem::path& file) {
    try {
      text::Tokenizer::open(file.string());
      return true;
    } catch (const DataError&) {
      return false;
    }
  });
  text::BpeTrainer trainer(arguments.train);
  uint64_t bytes = 0;
  for (const auto& file : data::expand_files("INPUT", arguments.files)) {
    const auto stream = io::open_bytes(file);
    const std::string text = io::read_all(*stream, kLongestText, file.string());
    expect_utf8(text, file.string());
    trainer.add(text);
    bytes += text.size();
  }
  std::fprintf(stderr, "tokenizer: %llu bytes, %zu different words\n", static_cast<unsigned long long>(bytes),
               trainer.words());
  const std::string file = trainer.finish([&](text::TokenId tokens) {
    if (tokens % 4096 < 2) std::fprintf(stderr, "tokenizer: %u of %u tokens\n", tokens, arguments.train.vocab);
  });
  const auto made = text::Tokenizer::parse(file, arguments.tokenizer);
  io::write_file_atomic(arguments.tokenizer, file);
  std::fprintf(stderr, "tokenizer: %u tokens written to %s\n", made.size(), arguments.tokenizer.c_str());
  if (made.size() < arguments.train.vocab) {
    std::fprintf(stderr, "tokenizer: fewer than the %u asked for: no further pair occurs %llu times\n",
                 arguments.train.vocab, static_cast<unsigned long long>(arguments.train.min_count));
  }
}

}  // namespace

void add_tokenizer(CLI::App& app) {
  auto* const verb = app.add_subcommand("tokenizer", "Text to token ids and back, by a Hugging Face tokenizer.json");
  verb->require_subcommand(1);
  verb->footer("Example: siamese tokenizer train tokenizer.json corpus/ --vocab 32768");
  const auto arguments = std::make_shared<TokenizerArguments>();
  const auto add = [&](const char* name, const char* what, const char* file) {
    auto* const action = verb->add_subcommand(name, what);
    action->add_option("T", arguments->tokenizer, file)->required();
    return action;
  };
  const char* const kFile = "tokenizer.json, or a folder that has one";
  auto* const info_verb = add("info", "What a tokenizer file holds", kFile);
  info_verb->add_flag("--json", arguments->json, "As one JSON object");
  info_verb->footer("Example: siamese tokenizer info tokenizer.json");
  info_verb->callback([arguments] { show_tokenizer(*arguments); });

  auto* const encode_verb = add("encode", "UTF-8 text to a JSON array of ids", kFile);
  encode_verb->add_option("FILES", arguments->files, "Text, also .gz and .zst; none or - is standard input");
  encode_verb->add_flag("--lines", arguments->lines, "An array for every line; else one for every file");
  encode_verb->add_flag("--json-lines", arguments->json_lines, "An array for every line, which is a JSON string");
  encode_verb->add_flag("--no-special", arguments->no_special, "Without the tokens put around a text (such as <s>)");
  encode_verb->add_option("--threads", arguments->threads, "With --lines")->check(CLI::Range(1, 1024));
  encode_verb->footer("Example: echo 'Hello world' | siamese tokenizer encode tokenizer.json --lines");
  encode_verb->callback([arguments] { encode_text(*arguments); });

  auto* const decode_verb = add("decode", "Arrays of ids, one a line, to text", kFile);
  decode_verb->add_option("FILES", arguments->files, "What encode prints; none or - is standard input");
  decode_verb->add_flag("--lines", arguments->lines, "A line break after every text: the reverse of encode --lines");
  decode_verb->add_flag("--json-lines", arguments->json_lines, "Every text as a JSON string on a line");
  decode_verb->add_flag("--skip-special", arguments->skip_special, "Leave special tokens out");
  decode_verb->footer("Example: echo '[15496, 995]' | siamese tokenizer decode tokenizer.json --lines");
  decode_verb->callback([arguments] { decode_ids(*arguments); });

  auto* const bench_verb = add("bench", "Time the encoding of JSON strings, one a line", kFile);
  bench_verb->add_option("FILES", arguments->files, "Lines of JSON strings; none or - is standard input");
  bench_verb->add_option("--threads", arguments->threads, "")->check(CLI::Range(1, 1024));
  bench_verb->add_option("--rounds", arguments->rounds, "The best counts")->check(CLI::Range(1, 1000));
  bench_verb->footer("Example: siamese tokenizer bench tokenizer.json lines.jsonl --threads 2");
  bench_verb->callback([arguments] { time_encoding(*arguments); });

  auto* const train_verb = add("train", "Make a byte-level BPE from text", "The file to write");
  train_verb->add_option("INPUT", arguments->files, "Text files, folders or globs, also .gz and .zst")->required();
  train_verb->add_option("--vocab", arguments->train.vocab, "Tokens, special ones and 256 bytes included")
      ->capture_default_str();
  train_verb->add_option("--special", arguments->special, "A special token, <|endoftext|> when none is given; repeat")
      ->allow_extra_args(false);
  train_verb->add_option("--min-count", arguments->train.min_count, "How often a pair must occur to become a token")
      ->capture_default_str();
  train_verb->add_option("--split", arguments->split, "Which model's way to split text into words")
      ->check(CLI::IsMember(enum_choices<text::Scan>()))
      ->capture_default_str();
  train_verb->footer("Example: siamese tokenizer train tokenizer.json corpus/ --vocab 32768");
  train_verb->callback([arguments] { train_tokenizer(*arguments); });
}

}  // namespace siamese::cli

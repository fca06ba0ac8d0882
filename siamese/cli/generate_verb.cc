#include <algorithm>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/cli/language_model.h"
#include "siamese/cli/verbs.h"
#include "siamese/eval/generate.h"
#include "siamese/eval/words.h"
#include "siamese/io/byte_stream.h"
#include "siamese/io/line_reader.h"
#include "siamese/io/strict_json.h"

namespace siamese::cli {
namespace {

constexpr size_t kLongestPrompt = size_t{1} << 28;

struct GenerateArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::vector<std::string> prompts;
  std::vector<std::string> stop;
  int64_t samples = 1;
  bool ids = false;
  bool special = false;
  bool no_special = false;
  bool json = false;
  eval::Sampling sampling;
};

// The texts as given; `-` is standard input, without the line break that ends its last line.
std::vector<std::string> prompt_texts(const std::vector<std::string>& given) {
  std::vector<std::string> texts = given;
  if (std::count(given.begin(), given.end(), "-") > 1) {
    throw UsageError("--prompt: expected - (standard input) once, got it twice");
  }
  for (std::string& text : texts) {
    if (text != "-") continue;
    text = io::read_all(*io::standard_input(), kLongestPrompt, "standard input");
    if (text.ends_with('\n')) text.pop_back();
  }
  return texts;
}

// What is made of each prompt: one alone is printed as it comes, several when all are there, each after its number.
class Printer {
 public:
  explicit Printer(size_t sequences) : texts_(sequences) {}

  void add(size_t sequence, const std::string& piece) {
    if (texts_.size() > 1) {
      texts_[sequence] += piece;
      return;
    }
    std::fwrite(piece.data(), 1, piece.size(), stdout);  // byte 0 is a token too
    std::fflush(stdout);
  }

  void finish() const {
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (texts_.size() > 1) std::printf("[%zu] ", i + 1);
      std::fwrite(texts_[i].data(), 1, texts_[i].size(), stdout);
      std::printf("\n");
    }
  }

 private:
  std::vector<std::string> texts_;
};

std::string to_json(const std::string& prompt, const std::vector<int64_t>& prompt_tokens, int64_t sample,
                    const std::string& text, const eval::Continuation& made) {
  const nlohmann::ordered_json line = {{"schema", 1},
                                       {"kind", "generation"},
                                       {"prompt", prompt},
                                       {"prompt_tokens", prompt_tokens},
                                       {"sample", sample},
                                       {"text", text},
                                       {"tokens", made.tokens()},
                                       {"finish", std::string(enum_text(made.finish()))}};
  return io::json_text(line) + "\n";
}

void generate_text(const GenerateArguments& arguments) {
  const std::vector<std::string> texts = prompt_texts(arguments.prompts);
  const auto [loaded, model] = load_language_model("generate", arguments.run, arguments.overrides);
  const auto words = arguments.ids ? eval::words_of_ids() : train::words_of(loaded);
  const bool special = arguments.special || (words->special() && !arguments.no_special);
  std::vector<std::vector<int64_t>> prompts;
  std::vector<eval::Continuation> made;
  for (const std::string& text : texts) {
    const std::vector<int64_t> prompt = words->encode(text, special);
    for (int64_t i = 0; i < arguments.samples; ++i) {
      prompts.push_back(prompt);
      made.emplace_back(*words, prompt, arguments.stop);
    }
  }
  if (arguments.samples > 1 && arguments.sampling.temperature == 0) {
    std::fprintf(stderr, "generate: at temperature 0 the %lld continuations of a prompt are all alike%s\n",
                 static_cast<long long>(arguments.samples), "; --temperature 1 draws each anew");
  }
  Printer printer(prompts.size());
  std::vector<std::string> all(prompts.size());
  const auto tell = [&](size_t sequence, const std::string& piece) {
    if (arguments.json) {
      all[sequence] += piece;
    } else if (!piece.empty()) {
      printer.add(sequence, piece);
    }
  };
  const eval::Ended ended = eval::generate(*model, prompts, arguments.sampling, [&](size_t sequence, int64_t token) {
    tell(sequence, made[sequence].add(token));
    return !made[sequence].done();
  });
  for (size_t i = 0; i < made.size(); ++i) tell(i, made[i].rest());
  if (arguments.json) {
    for (size_t i = 0; i < made.size(); ++i) {
      const size_t prompt = i / static_cast<size_t>(arguments.samples);
      const auto sample = static_cast<int64_t>(i % static_cast<size_t>(arguments.samples));
      std::fputs(to_json(texts[prompt], prompts[i], sample, all[i], made[i]).c_str(), stdout);
    }
  } else {
    printer.finish();
  }
  if (ended == eval::Ended::context_full) {
    std::fprintf(stderr, "generate: stopped where the context of %lld tokens (model.context) is full: %s\n",
                 static_cast<long long>(model->config().context), "learned positions know no further one");
  }
}

}  // namespace

void add_generate(CLI::App& app) {
  auto* const verb = app.add_subcommand("generate", "Continue a prompt, token by token");
  const auto arguments = std::make_shared<GenerateArguments>();
  eval::Sampling& sampling = arguments->sampling;
  verb->add_option("RUN", arguments->run, "A run directory (its latest) or a checkpoint")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for the keys of engine, such as engine.device=cpu");
  verb->add_option("--prompt", arguments->prompts,
                   "Text, - for standard input; token ids (\"15496 995\") for a model of token files without a "
                   "tokenizer. Several: repeat --prompt")
      ->required()
      ->allow_extra_args(false);
  verb->add_flag("--ids", arguments->ids, "Prompts and continuations are token ids, whatever the model speaks");
  verb->add_option("--stop", arguments->stop, "End a continuation before this text; several: repeat --stop")
      ->allow_extra_args(false);
  verb->add_option("-n,--n,--samples", arguments->samples,
                   "Continuations of each prompt, made together; printed as [1], [2] ...")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  verb->add_option("--max-tokens", sampling.max_tokens,
                   "Most tokens to make of each; past the context rotary positions slide")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  verb->add_option("--temperature", sampling.temperature, "0 = greedy")->check(CLI::Range(0.0, 1e6));
  verb->add_option("--top-k", sampling.top_k, "Draw from the k likeliest tokens; 0 = all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  verb->add_option("--top-p", sampling.top_p, "Draw from the smallest set of this probability")
      ->check(CLI::Range(1e-9, 1.0));
  verb->add_option("--seed", sampling.seed, "Of the draws");
  auto* const special = verb->add_flag("--special", arguments->special,
                                       "Put the tokenizer's tokens around a prompt (<s>); done by itself, unless the "
                                       "model was trained on token files of `siamese prepare`, which has none");
  verb->add_flag("--no-special", arguments->no_special, "Leave them out")->excludes(special);
  verb->add_flag("--json", arguments->json, "A JSON object for each continuation, one a line, when all are there");
  verb->footer("Example: siamese generate runs/x --prompt '12+34='");
  verb->callback([arguments] { generate_text(*arguments); });
}

}  // namespace siamese::cli

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "siamese/base/check.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/data/codec.h"
#include "siamese/eval/generate.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/device.h"

namespace siamese::cli {
namespace {

struct GenerateArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::vector<std::string> prompts;
  int64_t samples = 1;
  eval::Sampling sampling;
};

// What is made of each prompt: one alone is printed as it comes, several when all are there, each after its number.
class Printer {
 public:
  Printer(const data::Codec& codec, size_t sequences) : codec_(codec), texts_(sequences), begun_(sequences) {}

  void add(size_t sequence, const std::string& text) {
    const std::string piece = (!codec_.is_text() && begun_[sequence] ? " " : "") + text;
    begun_[sequence] = true;
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
  const data::Codec& codec_;
  std::vector<std::string> texts_;
  std::vector<bool> begun_;
};

void generate_text(const GenerateArguments& arguments) {
  const train::EngineConfig engine = load_stored_config(arguments.run, arguments.overrides).engine;
  train::apply_engine(engine);
  warn_of_slow_precision(engine);
  const auto loaded =
      train::load_model(arguments.run, train::Weights::trained, at::kFloat, 0, train::device_of(engine));
  const auto* const model = dynamic_cast<const models::LanguageModel*>(loaded.model.get());
  if (model == nullptr) {
    throw UsageError(arguments.run + ": generate needs a language model, got family " +
                     std::string(enum_text(loaded.config.model.family)));
  }
  const auto codec = data::make_codec(loaded.config.data);
  const bool arithmetic = loaded.config.data.source == data::Source::arithmetic;
  std::vector<std::vector<int64_t>> prompts;
  for (const std::string& text : arguments.prompts) {
    std::vector<int64_t> prompt = codec->encode(text);
    // Arithmetic samples begin with a line break and an answer ends with one.
    if (arithmetic && !text.starts_with("\n")) prompt.insert(prompt.begin(), codec->encode("\n")[0]);
    prompts.insert(prompts.end(), static_cast<size_t>(arguments.samples), prompt);
  }
  Printer printer(*codec, prompts.size());
  const eval::Ended ended = eval::generate(*model, prompts, arguments.sampling, [&](size_t sequence, int64_t token) {
    const std::string text = codec->decode(std::span(&token, 1));
    if (arithmetic && text == "\n") return false;
    printer.add(sequence, text);
    return true;
  });
  printer.finish();
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
                   "Text; token ids (\"15496 995\") for a model trained on token files. Several: repeat --prompt")
      ->required()
      ->allow_extra_args(false);
  verb->add_option("--samples", arguments->samples,
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
  verb->footer("Example: siamese generate runs/x --prompt '12+34='");
  verb->callback([arguments] { generate_text(*arguments); });
}

}  // namespace siamese::cli

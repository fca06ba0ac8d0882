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
  std::string prompt;
  eval::Sampling sampling;
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
  std::vector<int64_t> prompt = codec->encode(arguments.prompt);
  // Arithmetic samples begin with a line break and an answer ends with one.
  if (arithmetic && !arguments.prompt.starts_with("\n")) prompt.insert(prompt.begin(), codec->encode("\n")[0]);
  bool first = true;
  eval::generate(*model, prompt, arguments.sampling, [&](int64_t token) {
    const std::string text = codec->decode(std::span(&token, 1));
    if (arithmetic && text == "\n") return false;
    if (!codec->is_text() && !first) std::fputc(' ', stdout);
    std::fwrite(text.data(), 1, text.size(), stdout);  // byte 0 is a token too
    std::fflush(stdout);
    first = false;
    return true;
  });
  std::printf("\n");
}

}  // namespace

void add_generate(CLI::App& app) {
  auto* const verb = app.add_subcommand("generate", "Continue a prompt, token by token");
  const auto arguments = std::make_shared<GenerateArguments>();
  eval::Sampling& sampling = arguments->sampling;
  verb->add_option("RUN", arguments->run, "A run directory (its latest) or a checkpoint")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for the keys of engine, such as engine.device=cpu");
  verb->add_option("--prompt", arguments->prompt, "Text; token ids (\"15496 995\") for a model trained on token files")
      ->required();
  verb->add_option("--max-tokens", sampling.max_tokens, "Most tokens to make")
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

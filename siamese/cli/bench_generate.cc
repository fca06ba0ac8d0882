#include <algorithm>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/cli/bench.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/version.h"
#include "siamese/eval/generate.h"
#include "siamese/io/strict_json.h"
#include "siamese/measure/timing.h"
#include "siamese/models/registry.h"
#include "siamese/train/device.h"

namespace siamese::cli {
namespace bench_generate {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string against;
  int64_t tokens = 64;
  int64_t rounds = 5;
  bool json = false;
};

// A fresh model of a config, and the time of each token it made.
class Subject {
 public:
  explicit Subject(const train::RunConfig& config)
      : scheme_(config.model.residual),
        model_(models::make_model(config.model, config.init, config.train.seed, train::device_of(config.engine))) {}

  // Generates once; the median of the milliseconds between tokens. The first one carries the prompt.
  double round(int64_t tokens) {
    const auto* const model = dynamic_cast<const models::LanguageModel*>(model_.get());
    if (model == nullptr) throw UsageError("bench generate: expected a language model");
    const std::vector<int64_t> prompt(1, 0);
    std::vector<double> ms;
    auto last = std::chrono::steady_clock::now();
    eval::generate(*model, prompt, {.max_tokens = tokens + 1}, [&](int64_t) {
      const auto now = std::chrono::steady_clock::now();
      ms.push_back(std::chrono::duration<double, std::milli>(now - last).count());
      last = now;
      return true;
    });
    ms.erase(ms.begin());
    medians_.push_back(measure::quantile(ms, 0.5));
    return medians_.back();
  }

  const std::string& scheme() const { return scheme_; }
  double median_ms() const { return measure::quantile(medians_, 0.5); }

 private:
  std::string scheme_;
  std::unique_ptr<models::Model> model_;
  std::vector<double> medians_;
};

void run(const Arguments& arguments) {
  const auto config = load_run_config(arguments.config, arguments.overrides);
  train::apply_engine(config.engine);
  warn_of_slow_precision(config.engine);
  const int64_t tokens = std::min(arguments.tokens, config.model.context - 1);
  if (tokens < 1) throw UsageError("model.context: expected at least 2 to generate, got 1");
  std::vector<Subject> subjects;
  subjects.emplace_back(config);
  if (!arguments.against.empty()) {
    auto overrides = arguments.overrides;
    overrides.push_back("model.residual=" + arguments.against);
    subjects.emplace_back(load_run_config(arguments.config, overrides));
  }
  for (auto& subject : subjects) subject.round(std::min<int64_t>(tokens, 8));  // warm
  std::vector<double> ratios;
  for (int64_t i = 0; i < arguments.rounds; ++i) {
    const double mine = subjects[0].round(tokens);
    if (subjects.size() > 1) ratios.push_back(mine / subjects[1].round(tokens));
  }
  nlohmann::ordered_json json = {{"bench", "generate"},
                                 {"config", arguments.config},
                                 {"scheme", subjects[0].scheme()},
                                 {"tokens", tokens},
                                 {"median_ms", subjects[0].median_ms()}};
  if (!ratios.empty()) {
    json["against"] = subjects[1].scheme();
    json["against_ms"] = subjects[1].median_ms();
    json["ratio"] = measure::quantile(ratios, 0.5);
  }
  if (arguments.json) {
    std::printf("%s\n", io::json_text(json).c_str());
    return;
  }
  for (const auto& subject : subjects) {
    std::printf("%s: %.3f ms a token\n", subject.scheme().c_str(), subject.median_ms());
  }
  if (!ratios.empty())
    std::printf("ratio %.3f (median of %zu rounds)\n", measure::quantile(ratios, 0.5), ratios.size());
}

}  // namespace bench_generate

void add_bench_generate(CLI::App& bench) {
  auto* const verb = bench.add_subcommand("generate", "Milliseconds a token, one token at a time");
  const auto arguments = std::make_shared<bench_generate::Arguments>();
  verb->add_option("CONFIG", arguments->config, "A YAML file or the name of a recipe, such as bench/s")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value, for any key of the config");
  verb->add_option("--against", arguments->against, "Measure the same model under this scheme too, in turns");
  verb->add_option("--tokens", arguments->tokens, "Tokens a round, at most the context")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->add_option("--rounds", arguments->rounds, "Rounds")->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->footer("Example: siamese bench generate bench/s model.residual=siamese --against pre");
  verb->callback([arguments] { bench_generate::run(*arguments); });
}

}  // namespace siamese::cli

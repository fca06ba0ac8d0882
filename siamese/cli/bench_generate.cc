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
#include "siamese/measure/machine.h"
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
  int64_t sequences = 1;
  int64_t rounds = 5;
  bool json = false;
};

// A fresh model of a config, and the time of each token it made.
class Subject {
 public:
  explicit Subject(const train::RunConfig& config)
      : scheme_(config.model.residual),
        model_(models::make_model(config.model, config.init, config.train.seed, train::device_of(config.engine))) {}

  void warm(int64_t tokens, int64_t sequences) {
    round(tokens, sequences);
    medians_.clear();
  }

  // Generates once; the median of the milliseconds from one token of every sequence to the next.
  double round(int64_t tokens, int64_t sequences) {
    const std::vector<std::vector<int64_t>> prompts(static_cast<size_t>(sequences), std::vector<int64_t>(1, 0));
    std::vector<double> ms;
    auto last = std::chrono::steady_clock::now();
    eval::generate(model(), prompts, {.max_tokens = tokens + 1}, [&](size_t sequence, int64_t) {
      if (sequence > 0) return true;
      const auto now = std::chrono::steady_clock::now();
      ms.push_back(std::chrono::duration<double, std::milli>(now - last).count());
      last = now;
      return true;
    });
    ms.erase(ms.begin());  // the first carries the prompt
    medians_.push_back(measure::quantile(ms, 0.5));
    return medians_.back();
  }

  const std::string& scheme() const { return scheme_; }
  double median_ms() const { return measure::quantile(medians_, 0.5); }
  double best_ms() const { return *std::min_element(medians_.begin(), medians_.end()); }

  // The weights that every token needs: of a table of embeddings that is not the head, too, it is a row.
  double megabytes() const {
    const models::ModelConfig& config = model().config();
    int64_t elements = model().active_parameters();
    if (!config.tied) elements -= config.vocab * config.width;
    if (config.positions == models::Positions::learned) elements -= config.context * config.width;
    const bool half = ops::precision() == ops::Precision::bfloat16;  // rounded once, read so for every token
    return static_cast<double>(elements) * static_cast<double>(half ? sizeof(uint16_t) : sizeof(float)) * 1e-6;
  }

 private:
  const models::LanguageModel& model() const {
    const auto* const model = dynamic_cast<const models::LanguageModel*>(model_.get());
    if (model == nullptr) throw UsageError("bench generate: expected a language model");
    return *model;
  }

  std::string scheme_;
  std::unique_ptr<models::Model> model_;
  std::vector<double> medians_;
};

// GB/s of reading memory and doing nothing with it: the median of what was seen between the rounds.
class ReadRate {
 public:
  void measure() {
    double seconds = measure::seconds_of([&] { loop_.run(); });
    for (int i = 0; i < 2; ++i) seconds = std::min(seconds, measure::seconds_of([&] { loop_.run(); }));
    rates_.push_back(static_cast<double>(kElements) * sizeof(float) / seconds * 1e-9);
  }
  double gb_per_s() const { return measure::quantile(rates_, 0.5); }

 private:
  static constexpr int64_t kElements = int64_t{1} << 26;  // 256 MB, beyond any cache
  measure::MemoryLoop loop_{1, 0, 0, kElements};
  std::vector<double> rates_;
};

void print(const nlohmann::ordered_json& json, const std::vector<Subject>& subjects) {
  for (const auto& subject : subjects) {
    std::printf("%s: %.3f ms a token\n", subject.scheme().c_str(), subject.median_ms());
  }
  std::printf("bound %.3f ms: %.1f MB of weights at %.1f GB/s; %s takes %.2f of it\n", json["bound_ms"].get<double>(),
              json["weights_mb"].get<double>(), json["read_gb_per_s"].get<double>(), subjects[0].scheme().c_str(),
              json["of_bound"].get<double>());
  if (json.contains("ratio")) {
    std::printf("ratio %.3f, %.3f to %.3f (median of %lld rounds, its 95 %% interval)\n", json["ratio"].get<double>(),
                json["ratio_low"].get<double>(), json["ratio_high"].get<double>(),
                static_cast<long long>(json["rounds"].get<int64_t>()));
  }
}

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
  ReadRate rate;
  for (auto& subject : subjects) subject.warm(std::min<int64_t>(tokens, 8), arguments.sequences);
  std::vector<double> ratios;
  for (int64_t i = 0; i < arguments.rounds; ++i) {
    rate.measure();
    const double mine = subjects[0].round(tokens, arguments.sequences);
    if (subjects.size() > 1) ratios.push_back(mine / subjects[1].round(tokens, arguments.sequences));
  }
  const double bound = subjects[0].megabytes() / rate.gb_per_s();
  nlohmann::ordered_json json = {{"bench", "generate"},
                                 {"config", arguments.config},
                                 {"scheme", subjects[0].scheme()},
                                 {"precision", std::string(enum_text(ops::precision()))},
                                 {"tokens", tokens},
                                 {"sequences", arguments.sequences},
                                 {"rounds", arguments.rounds},
                                 {"median_ms", subjects[0].median_ms()},
                                 {"best_ms", subjects[0].best_ms()},
                                 {"weights_mb", subjects[0].megabytes()},
                                 {"read_gb_per_s", rate.gb_per_s()},
                                 {"bound_ms", bound},
                                 {"of_bound", subjects[0].median_ms() / bound}};
  if (!ratios.empty()) {
    json["against"] = subjects[1].scheme();
    json["against_ms"] = subjects[1].median_ms();
    json["ratio"] = measure::quantile(ratios, 0.5);
    const measure::MedianInterval within = measure::median_interval(ratios);
    json["ratio_low"] = within.low;
    json["ratio_high"] = within.high;
  }
  if (arguments.json) {
    std::printf("%s\n", io::json_text(json).c_str());
  } else {
    print(json, subjects);
  }
}

}  // namespace bench_generate

void add_bench_generate(CLI::App& bench) {
  auto* const verb =
      bench.add_subcommand("generate", "Milliseconds a token, one token at a time, beside what memory allows");
  const auto arguments = std::make_shared<bench_generate::Arguments>();
  verb->add_option("CONFIG", arguments->config, "A YAML file or the name of a recipe, such as bench/s")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value, for any key of the config");
  verb->add_option("--against", arguments->against, "Measure the same model under this scheme too, in turns");
  verb->add_option("--tokens", arguments->tokens, "Tokens a round, at most the context")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->add_option("--sequences", arguments->sequences, "Made at once, a token of each at a time")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  verb->add_option("--rounds", arguments->rounds, "Rounds")->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->footer("Example: siamese bench generate bench/s model.residual=siamese --against pre");
  verb->callback([arguments] { bench_generate::run(*arguments); });
}

}  // namespace siamese::cli

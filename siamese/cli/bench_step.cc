#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "siamese/cli/bench.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/step_benchmark.h"
#include "siamese/cli/table.h"
#include "siamese/cli/together.h"
#include "siamese/cli/version.h"
#include "siamese/io/strict_json.h"
#include "siamese/measure/timing.h"

namespace siamese::cli {
namespace bench_step {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> against;
  StepBenchmarkOptions options;
  bool json = false;
};

nlohmann::ordered_json to_json(const std::string& config, const std::string& scheme, const StepBenchmark& result) {
  const auto at = [&](double share) { return measure::quantile(result.step_ms, share); };
  return {{"bench", "step"},
          {"config", config},
          {"scheme", scheme},
          {"parameters", result.parameters},
          {"tokens", result.tokens},
          {"threads", result.threads},
          {"device", result.device},
          {"precision", result.precision},
          {"steps", result.step_ms.size()},
          {"median_ms", result.median_ms()},
          {"p25_ms", at(0.25)},
          {"p75_ms", at(0.75)},
          {"min_ms", at(0)},
          {"tokens_per_s", result.tokens_per_s()},
          {"gflops", result.gflops()},
          {"fma_gflops", result.fma_gflops},
          {"peak_share", result.gflops() / result.fma_gflops},
          {"idle_rss_mb", result.idle_rss_mb},
          {"peak_rss_mb", result.peak_rss_mb},
          {"state_mb", result.state_mb},
          {"loss", result.loss},
          {"ranks", result.ranks},
          {"exchange_ms", result.exchange_ms},
          {"hidden_share", result.hidden_share},
          {"part_ms", result.part_ms}};
}

std::string parts_table(const std::map<std::string, double>& part_ms) {
  std::vector<std::pair<std::string, double>> parts(part_ms.begin(), part_ms.end());
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  double total = 0;
  for (const auto& part : parts) total += part.second;
  std::vector<std::vector<std::string>> rows = {{"part", "ms a step", "share"}};
  for (const auto& [part, ms] : parts) {
    rows.push_back({part, fmt::format("{:.2f}", ms), fmt::format("{:.1f} %", 100 * ms / total)});
  }
  return text_table(rows);
}

void compare(const Arguments& arguments, const train::RunConfig& config, comm::Group* group) {
  std::vector<std::string> overrides = arguments.overrides;
  overrides.insert(overrides.end(), arguments.against.begin(), arguments.against.end());
  const auto result = compare_steps(config, load_run_config(arguments.config, overrides), arguments.options, group);
  if (group != nullptr && !group->leads()) return;
  const double ms = measure::quantile(result.step_ms, 0.5);
  const double against_ms = measure::quantile(result.against_ms, 0.5);
  const double ratio = measure::quantile(result.ratios(), 0.5);
  const measure::MedianInterval within = measure::median_interval(result.ratios());
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"bench", "step_against"},          {"config", arguments.config},
                                         {"overrides", arguments.overrides}, {"against", arguments.against},
                                         {"steps", result.step_ms.size()},   {"median_ms", ms},
                                         {"against_ms", against_ms},         {"ratio", ratio},
                                         {"ratio_low", within.low},          {"ratio_high", within.high}};
    std::printf("%s\n", io::json_text(json).c_str());
    return;
  }
  std::printf("%.1f ms a step, %.1f ms with %s: ratio %.3f, %.3f to %.3f (median of %zu turns, its 95 %% interval)\n",
              ms, against_ms, fmt::format("{}", fmt::join(arguments.against, " ")).c_str(), ratio, within.low,
              within.high, result.step_ms.size());
}

void run(const Arguments& arguments, const train::RunConfig& config, comm::Group* group) {
  const bool leads = group == nullptr || group->leads();
  train::apply_engine(config.engine);
  if (leads) warn_of_slow_precision(config.engine);
  if (!arguments.against.empty()) return compare(arguments, config, group);
  const StepBenchmark result = benchmark_step(config, arguments.options, group);
  if (!leads) return;
  const auto json = to_json(arguments.config, config.model.residual, result);
  if (arguments.json) {
    std::printf("%s\n", io::json_text(json).c_str());
    return;
  }
  auto rows = std::vector<std::vector<std::string>>{
      {"scheme", config.model.residual},
      {"step",
       fmt::format("{:.1f} ms (median of {}; quartiles {:.1f} and {:.1f}) on {} threads", result.median_ms(),
                   result.step_ms.size(), json["p25_ms"].get<double>(), json["p75_ms"].get<double>(), result.threads)},
      {"tokens", fmt::format("{:.0f} a second, {} a step", result.tokens_per_s(), result.tokens)},
      {"GFLOP/s", std::isnan(result.fma_gflops)
                      ? fmt::format("{:.1f}", result.gflops())
                      : fmt::format("{:.1f}, {:.0f} % of the {:.1f} of multiply-adds in registers", result.gflops(),
                                    100 * result.gflops() / result.fma_gflops, result.fma_gflops)},
      {"memory",
       fmt::format("{:.0f} MB at most: {:.0f} idle, {:.0f} parameters, gradients and moments, {:.0f} the rest",
                   result.peak_rss_mb, result.idle_rss_mb, result.state_mb,
                   result.peak_rss_mb - result.idle_rss_mb - result.state_mb)}};
  if (result.ranks > 1) {
    rows.push_back(
        {"ranks", fmt::format("{}: gradients are exchanged for {:.1f} ms a step, {:.0f} % of it during backward",
                              result.ranks, result.exchange_ms, 100 * result.hidden_share)});
  }
  std::printf("%s", text_table(rows).c_str());
  if (!result.part_ms.empty()) std::printf("\n%s", parts_table(result.part_ms).c_str());
}

}  // namespace bench_step

void add_bench_step(CLI::App& bench) {
  auto* const verb = bench.add_subcommand("step", "The whole training step on random tokens: time, memory, parts");
  const auto arguments = std::make_shared<bench_step::Arguments>();
  constexpr int64_t kMost = 1 << 20;
  verb->add_option("CONFIG", arguments->config, "A YAML file or the name of a recipe, such as bench/s")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value, for any key of the config");
  verb->add_option("--steps", arguments->options.steps, "Steps that are timed")->check(CLI::Range(int64_t{1}, kMost));
  verb->add_option("--warmup", arguments->options.warmup, "Steps before them")->check(CLI::Range(int64_t{0}, kMost));
  verb->add_option("--part-steps", arguments->options.part_steps, "Further steps, watched for the time of each part")
      ->check(CLI::Range(int64_t{0}, kMost));
  verb->add_option("--against", arguments->against,
                   "key=value: time the same config with this, too, step by step in turns")
      ->allow_extra_args(false);
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->footer("Example: siamese bench step bench/s model.residual=siamese --against model.residual=pre");
  verb->callback([arguments] {
    const auto config = load_run_config(arguments->config, arguments->overrides);  // refused once, not by every rank
    side_by_side([&](comm::Group* group) {
      bench_step::run(*arguments, config, group);
      return 0;
    });
  });
}

}  // namespace siamese::cli

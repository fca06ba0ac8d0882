#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <torch/version.h>

#include "siamese/base/check.h"
#include "siamese/cli/bench.h"
#include "siamese/cli/growth.h"
#include "siamese/cli/own_process.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/table.h"
#include "siamese/io/strict_json.h"
#include "siamese/kernels/simd.h"

namespace siamese::cli {
namespace bench_growth {

struct Arguments {
  std::string config = "bench/s";
  std::vector<std::string> overrides;
  std::string only;
  int64_t steps = 5;
  int64_t warmup = 1;
  bool json = false;
};

std::vector<std::string> with(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// Every point is `bench step` in a process of its own: the peak of memory belongs to a process and never falls, so in
// one process only the largest point would have its own.
nlohmann::json step_of(const Arguments& arguments, const GrowthPoint& point) {
  std::vector<std::string> words = {"bench", "step", arguments.config};
  words = with(with(words, arguments.overrides), point.overrides);
  words = with(words, {"--steps", std::to_string(arguments.steps), "--warmup", std::to_string(arguments.warmup),
                       "--part-steps", "0", "--json"});
  return io::read_json(output_of_own_process(words), "bench step");
}

GrowthMeasure measure_of(const nlohmann::json& step) {
  const auto number = [&](const char* key) { return step.at(key).get<double>(); };
  constexpr double kLeastMb = 1;  // what rounding to pages may hide; its logarithm is fitted
  return {number("median_ms"), number("gflops") * number("median_ms") * 1e-3,
          std::max(kLeastMb, number("peak_rss_mb") - number("idle_rss_mb") - number("state_mb"))};
}

std::string name_of(const std::string& axis, bool recompute) { return recompute ? axis + ", recompute" : axis; }

void print(const nlohmann::ordered_json& result) {
  const auto text = [](const nlohmann::ordered_json& number, const char* format) {
    return number.is_number() && std::isfinite(number.get<double>())
               ? fmt::format(fmt::runtime(format), number.get<double>())
               : std::string("-");
  };
  const auto name = [](const nlohmann::ordered_json& row) {
    return name_of(row["axis"].get<std::string>(), row["recompute"].get<bool>());
  };
  std::vector<std::vector<std::string>> rows = {{"axis", "value", "step ms", "GFLOP", "GFLOP/s", "activations MB"}};
  for (const auto& point : result["points"]) {
    rows.push_back({name(point), std::to_string(point["value"].get<int64_t>()), text(point["median_ms"], "{:.1f}"),
                    text(point["gflop"], "{:.3g}"), text(point["gflops"], "{:.3g}"),
                    text(point["activations_mb"], "{:.0f}")});
  }
  std::printf("%s\n", text_table(rows).c_str());
  rows = {{"grows as a power of", "points", "time", "FLOPs", "activations"}};
  for (const auto& fit : result["fits"]) {
    rows.push_back({name(fit), std::to_string(fit["points"].get<int64_t>()), text(fit["time"], "{:.2f}"),
                    text(fit["flops"], "{:.2f}"), text(fit["activations"], "{:.2f}")});
  }
  std::printf("%s", text_table(rows).c_str());
}

nlohmann::ordered_json point_json(const GrowthPoint& point, const nlohmann::json& step, const GrowthMeasure& measure) {
  nlohmann::ordered_json result = {{"axis", point.axis},          {"recompute", point.recompute},
                                   {"value", point.value},        {"overrides", point.overrides},
                                   {"median_ms", measure.ms},     {"gflop", measure.gflop},
                                   {"gflops", step.at("gflops")}, {"activations_mb", measure.activations_mb}};
  for (const char* const key :
       {"parameters", "tokens", "min_ms", "fma_gflops", "idle_rss_mb", "peak_rss_mb", "state_mb"}) {
    result[key] = step.at(key);
  }
  return result;
}

// The points to measure, each checked before the first is.
std::vector<GrowthPoint> chosen_points(const Arguments& arguments, const train::RunConfig& base) {
  std::vector<GrowthPoint> points = growth_points(base);
  if (!arguments.only.empty()) {
    std::erase_if(points, [&](const GrowthPoint& point) { return point.axis != arguments.only; });
  }
  for (const auto& point : points) load_run_config(arguments.config, with(arguments.overrides, point.overrides));
  return points;
}

void run(const Arguments& arguments) {
  const auto base = load_run_config(arguments.config, arguments.overrides);
  if (base.engine.recompute != 0) {
    throw UsageError("engine.recompute: bench growth measures without it and with 1: leave it out");
  }
  train::apply_engine(base.engine);  // what it refuses is refused once, here
  const auto points = chosen_points(arguments, base);
  nlohmann::ordered_json result = {{"bench", "growth"},
                                   {"config", arguments.config},
                                   {"overrides", arguments.overrides},
                                   {"scheme", base.model.residual},
                                   {"family", std::string(enum_text(base.model.family))},
                                   {"precision", std::string(enum_text(base.engine.precision))},
                                   {"steps", arguments.steps},
                                   {"cpu", train::cpu_name()},
                                   {"cores", train::core_count()},
                                   {"simd", kernels::simd_level()},
                                   {"torch", TORCH_VERSION}};
  std::vector<GrowthMeasure> measures;
  for (const auto& point : points) {
    if (isatty(STDERR_FILENO) != 0) {
      std::fprintf(stderr, "bench growth: %zu of %zu: %s %lld\n", measures.size() + 1, points.size(),
                   name_of(point.axis, point.recompute).c_str(), static_cast<long long>(point.value));
    }
    const auto step = step_of(arguments, point);
    measures.push_back(measure_of(step));
    result["threads"] = step.at("threads");
    result["points"].push_back(point_json(point, step, measures.back()));
  }
  for (const auto& fit : growth_fits(points, measures)) {
    result["fits"].push_back({{"axis", fit.axis},
                              {"recompute", fit.recompute},
                              {"points", fit.points},
                              {"time", fit.time},
                              {"flops", fit.flops},
                              {"activations", fit.activations}});
  }
  if (arguments.json) {
    std::printf("%s\n", io::json_text(result).c_str());
  } else {
    print(result);
  }
}

}  // namespace bench_growth

void add_bench_growth(CLI::App& bench) {
  auto* const verb = bench.add_subcommand(
      "growth", "A step's time and memory against depth, width, context and batch, with their exponents");
  const auto arguments = std::make_shared<bench_growth::Arguments>();
  constexpr int64_t kMost = 1 << 20;
  verb->add_option("CONFIG", arguments->config, "What is made deeper, wider, longer: a YAML file or recipe")
      ->capture_default_str();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value, for any key of the config");
  verb->add_option("--only", arguments->only, "One axis")->check(CLI::IsMember({"depth", "width", "context", "batch"}));
  verb->add_option("--steps", arguments->steps, "Steps of a point that are timed")
      ->check(CLI::Range(int64_t{1}, kMost))
      ->capture_default_str();
  verb->add_option("--warmup", arguments->warmup, "Steps before them")
      ->check(CLI::Range(int64_t{0}, kMost))
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->footer("Example: siamese bench growth bench/s model.residual=pre");
  verb->callback([arguments] { bench_growth::run(*arguments); });
}

}  // namespace siamese::cli

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/cli/bench.h"
#include "siamese/cli/table.h"
#include "siamese/cli/version.h"
#include "siamese/io/strict_json.h"
#include "siamese/kernels/simd.h"
#include "siamese/measure/machine.h"
#include "siamese/measure/timing.h"
#include "siamese/nn/experts.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/operand.h"
#include "siamese/train/config.h"

namespace siamese::cli {
namespace bench_experts {

struct Arguments {
  int64_t rows = 2048;
  int64_t width = 128;
  int64_t hidden = 128;
  int64_t experts = 8;
  int64_t per_token = 2;
  int64_t rounds = 30;
  int64_t threads = 0;
  std::string precision = std::string(enum_text(ops::Precision::float32));
  bool json = false;
};

at::Tensor random_rows(int64_t rows, int64_t cols, uint64_t stream) {
  at::Tensor made = at::empty({rows, cols}, at::kFloat);
  float* const data = made.mutable_data_ptr<float>();
  for (int64_t i = 0; i < made.numel(); ++i) {
    data[i] = static_cast<float>(random_normal(1, stream, static_cast<uint64_t>(i)));
  }
  return made;
}

// What a junction hands to a branch.
at::Tensor operand_rows(const Arguments& arguments, uint64_t stream) {
  return ops::to_operand(random_rows(arguments.rows, arguments.width, stream));
}

// One way through the branch and back, gradients added to a buffer as in training.
class Subject {
 public:
  using Branch = std::function<at::Tensor(const at::Tensor& x)>;

  Subject(const Arguments& arguments, const std::function<Branch(const nn::Scope& scope)>& make)
      : parameters_(1),
        branch_(make(nn::Scope(parameters_))),
        gradients_(parameters_),
        x_(operand_rows(arguments, 1).set_requires_grad(true)),
        dy_(operand_rows(arguments, 2)) {}

  void run() const {
    const ops::GradientsInPlace in_place;
    x_.mutable_grad().reset();
    branch_(x_).backward(dy_);
  }

 private:
  nn::Parameters parameters_;
  Branch branch_;
  nn::GradientBuffer gradients_;
  at::Tensor x_;
  at::Tensor dy_;
};

Subject make_experts(const Arguments& arguments, const nn::Initializer& init) {
  return {arguments, [&](const nn::Scope& scope) -> Subject::Branch {
            const nn::ExpertsShape shape{.width = arguments.width,
                                         .hidden = arguments.hidden,
                                         .experts = arguments.experts,
                                         .per_token = arguments.per_token};
            return [experts = nn::Experts(scope, shape, init, 0, {})](const at::Tensor& x) { return experts(x).value; };
          }};
}

Subject make_dense(const Arguments& arguments, const nn::Initializer& init) {
  return {arguments, [&](const nn::Scope& scope) -> Subject::Branch {
            const nn::FeedForwardShape shape{.width = arguments.width,
                                             .hidden = arguments.per_token * arguments.hidden};
            return [ffn = nn::FeedForward(scope, shape, init, 0, {})](const at::Tensor& x) { return ffn(x); };
          }};
}

// Multiply-adds of the three products of swiglu, forward and twice backward, two operations each; not the router's.
double operations(const Arguments& arguments) {
  return 3 * 2 * 3 * static_cast<double>(arguments.rows) * static_cast<double>(arguments.per_token) *
         static_cast<double>(arguments.width) * static_cast<double>(arguments.hidden);
}

nlohmann::ordered_json measure(const Arguments& arguments) {
  const nn::Initializer init({}, arguments.width, 1);
  const Subject experts = make_experts(arguments, init);
  const Subject dense = make_dense(arguments, init);
  const ops::RoundWeightsOnce round_once;  // as between two steps of the optimizer
  for (int i = 0; i < 3; ++i) {            // warm
    experts.run();
    dense.run();
  }
  std::vector<double> seconds, dense_seconds, ratios;
  for (int64_t i = 0; i < arguments.rounds; ++i) {
    seconds.push_back(measure::seconds_of([&] { experts.run(); }));
    dense_seconds.push_back(measure::seconds_of([&] { dense.run(); }));
    ratios.push_back(dense_seconds.back() / seconds.back());
  }
  const double gflops = operations(arguments) / measure::quantile(seconds, 0.5) / 1e9;
  const bool half = ops::precision() == ops::Precision::bfloat16 && kernels::has_bfloat16_products();
  const double fma =
      half ? measure::bfloat16_gflops(at::get_num_threads()) : measure::fma_gflops(at::get_num_threads());
  return {{"bench", "experts"},
          {"rows", arguments.rows},
          {"width", arguments.width},
          {"hidden", arguments.hidden},
          {"experts", arguments.experts},
          {"per_token", arguments.per_token},
          {"precision", arguments.precision},
          {"threads", at::get_num_threads()},
          {"rounds", arguments.rounds},
          {"median_ms", measure::quantile(seconds, 0.5) * 1e3},
          {"gflops", gflops},
          {"dense_ms", measure::quantile(dense_seconds, 0.5) * 1e3},
          {"dense_gflops", operations(arguments) / measure::quantile(dense_seconds, 0.5) / 1e9},
          {"ratio", measure::quantile(ratios, 0.5)},
          {"fma_gflops", fma},
          {"peak_share", gflops / fma}};
}

void run(const Arguments& arguments) {
  if (arguments.per_token > arguments.experts) {
    throw UsageError(
        fmt::format("--per-token: expected at most --experts, {}, got {}", arguments.experts, arguments.per_token));
  }
  train::EngineConfig engine;
  engine.threads = arguments.threads;
  engine.precision = enum_from_text<ops::Precision>(arguments.precision).value_or(ops::Precision::float32);
  train::apply_engine(engine);
  warn_of_slow_precision(engine);
  const auto json = measure(arguments);
  if (arguments.json) {
    std::printf("%s\n", io::json_text(json).c_str());
    return;
  }
  const auto number = [&](const char* key) { return fmt::format("{:.2f}", json[key].get<double>()); };
  std::printf("%s", text_table({{"forward and backward", "ms", "GFLOP/s"},
                                {"experts", number("median_ms"), number("gflops")},
                                {"dense, as large as a row's experts", number("dense_ms"), number("dense_gflops")}})
                        .c_str());
  std::printf(
      "%.0f %% of the dense speed (median of %lld turns), %.0f %% of the %.1f GFLOP/s of multiply-adds in "
      "registers\n",
      100 * json["ratio"].get<double>(), static_cast<long long>(arguments.rounds),
      100 * json["peak_share"].get<double>(), json["fma_gflops"].get<double>());
}

}  // namespace bench_experts

void add_bench_experts(CLI::App& bench) {
  auto* const verb = bench.add_subcommand("experts", "A mixture of experts beside a dense branch of its active size");
  const auto arguments = std::make_shared<bench_experts::Arguments>();
  const auto add = [&](const std::string& name, int64_t& value, const std::string& text) {
    verb->add_option(name, value, text)->check(CLI::Range(int64_t{1}, int64_t{1} << 24))->capture_default_str();
  };
  add("--rows", arguments->rows, "Tokens of a pass");
  add("--width", arguments->width, "Width of the stream");
  add("--hidden", arguments->hidden, "Hidden width of an expert");
  add("--experts", arguments->experts, "Experts");
  add("--per-token", arguments->per_token, "Experts a token goes to");
  add("--rounds", arguments->rounds, "Rounds that are timed, in turns");
  verb->add_option("--threads", arguments->threads, "Threads; 0 takes every core")->check(CLI::Range(0, 4096));
  verb->add_option("--precision", arguments->precision, "As engine.precision")
      ->check(CLI::IsMember(enum_choices<ops::Precision>()))
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->footer("Example: siamese bench experts --rows 1024 --width 512 --hidden 1024 --experts 16 --per-token 2");
  verb->callback([arguments] { bench_experts::run(*arguments); });
}

}  // namespace siamese::cli

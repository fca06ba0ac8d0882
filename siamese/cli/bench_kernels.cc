#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/cli/bench.h"
#include "siamese/cli/table.h"
#include "siamese/io/strict_json.h"
#include "siamese/measure/machine.h"
#include "siamese/measure/timing.h"
#include "siamese/train/config.h"

namespace siamese::cli {
namespace bench_kernels {

struct Arguments {
  int64_t width = 768;
  int64_t threads = 0;
  double seconds = 0.4;
  std::string only;
  bool in_cache = false;
  bool json = false;
};

constexpr int64_t kFarBeyondCache = int64_t{8} << 20;  // floats of an array: 32 MB
constexpr int64_t kInCache = int64_t{1} << 19;         // 2 MB, as in a step of bench/s
constexpr int kTurnsToWarm = 2;                        // the heap grows in them
constexpr int kTurnsAtLeast = 3;

struct Measured {
  double seconds;         // of the kernel
  double stream_seconds;  // of the loop beside it
  double share;           // of the loop's rate
};

// Kernel and loop in turns, so that both see the same machine. In cache a turn is a few runs after one that warms.
Measured measure(const KernelCase& kernel, const Arguments& arguments) {
  const measure::MemoryLoop loop(kernel.reads, kernel.writes, kernel.in_place, kernel.elements);
  const int runs = arguments.in_cache ? 5 : 1;
  const auto turn = [&](const auto& prepare, const auto& run) {
    std::vector<double> seconds;
    for (int i = 0; i < runs + (arguments.in_cache ? 1 : 0); ++i) {
      prepare();
      seconds.push_back(measure::seconds_of(run));
    }
    if (arguments.in_cache) seconds.erase(seconds.begin());
    return measure::quantile(seconds, 0.5);
  };
  const auto kernel_turn = [&] { return turn(kernel.prepare, kernel.run); };
  const auto loop_turn = [&] { return turn([] {}, [&] { loop.run(); }); };
  for (int i = 0; i < kTurnsToWarm; ++i) {
    kernel_turn();
    loop_turn();
  }
  std::vector<double> kernels, loops, shares;
  double spent = 0;
  while (spent < arguments.seconds || shares.size() < kTurnsAtLeast) {
    spent += measure::seconds_of([&] {
      kernels.push_back(kernel_turn());
      loops.push_back(loop_turn());
      shares.push_back(loops.back() / kernels.back());
    });
  }
  return {measure::quantile(kernels, 0.5), measure::quantile(loops, 0.5), measure::quantile(shares, 0.5)};
}

void run(const Arguments& arguments) {
  train::apply_engine({.threads = arguments.threads});
  const int64_t rows = std::max<int64_t>(1, (arguments.in_cache ? kInCache : kFarBeyondCache) / arguments.width);
  nlohmann::ordered_json result = {{"bench", "kernels"},
                                   {"in_cache", arguments.in_cache},
                                   {"threads", at::get_num_threads()},
                                   {"rows", rows},
                                   {"width", arguments.width}};
  result["kernels"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> table = {
      {"kernel", "pass", "arrays read + written", "ms", "GB/s", "stream GB/s", "share"}};
  for (const auto& make : kernel_cases(rows, arguments.width)) {
    const KernelCase kernel = make();
    if (!arguments.only.empty() && kernel.name.find(arguments.only) == std::string::npos) continue;
    const Measured measured = measure(kernel, arguments);
    const double gigabytes =
        static_cast<double>(kernel.reads + kernel.writes) * sizeof(float) * static_cast<double>(kernel.elements) * 1e-9;
    const double rate = gigabytes / measured.seconds;
    const double stream_rate = gigabytes / measured.stream_seconds;
    table.push_back({kernel.name, kernel.pass, fmt::format("{} + {}", kernel.reads, kernel.writes),
                     fmt::format("{:.3f}", measured.seconds * 1e3), fmt::format("{:.1f}", rate),
                     fmt::format("{:.1f}", stream_rate), fmt::format("{:.0f} %", 100 * measured.share)});
    result["kernels"].push_back({{"kernel", kernel.name},
                                 {"pass", kernel.pass},
                                 {"reads", kernel.reads},
                                 {"writes", kernel.writes},
                                 {"ms", measured.seconds * 1e3},
                                 {"gb_per_s", rate},
                                 {"stream_gb_per_s", stream_rate},
                                 {"share", measured.share}});
  }
  if (table.size() == 1) throw UsageError("--only: expected part of a kernel's name, got '" + arguments.only + "'");
  std::printf("%s", arguments.json ? (io::json_text(result) + "\n").c_str() : text_table(table).c_str());
}

}  // namespace bench_kernels

void add_bench_kernels(CLI::App& bench) {
  auto* const verb = bench.add_subcommand(
      "kernels", "GB/s of every pass over memory, beside a plain streaming loop with as many arrays");
  const auto arguments = std::make_shared<bench_kernels::Arguments>();
  verb->add_flag("--in-cache", arguments->in_cache, "Arrays of 2 MB instead of 32 MB");
  verb->add_option("--width", arguments->width, "Elements of a row")->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->add_option("--threads", arguments->threads, "0 = one per core")->check(CLI::Range(int64_t{0}, int64_t{1024}));
  verb->add_option("--seconds", arguments->seconds, "Time for each kernel")->check(CLI::Range(0.0, 3600.0));
  verb->add_option("--only", arguments->only, "Only kernels with this in their name");
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->footer("Example: siamese bench kernels --only junction");
  verb->callback([arguments] { bench_kernels::run(*arguments); });
}

}  // namespace siamese::cli

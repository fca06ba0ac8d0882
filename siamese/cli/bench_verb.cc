#include <cstdio>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <torch/version.h>

#include "siamese/cli/bench.h"
#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/io/strict_json.h"
#include "siamese/kernels/simd.h"
#include "siamese/measure/machine.h"
#include "siamese/train/config.h"

namespace siamese::cli {
namespace bench_machine {

void print_machine(bool json) {
  const int cores = static_cast<int>(train::core_count());
  const double memory_gb =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) / (1 << 30);
  nlohmann::ordered_json result = {{"bench", "machine"},     {"cpu", train::cpu_name()},
                                   {"cores", cores},         {"simd", kernels::simd_level()},
                                   {"memory_gb", memory_gb}, {"torch", TORCH_VERSION}};
  result["bfloat16"] = fast_bfloat16();
  std::vector<std::vector<std::string>> rows = {{"threads", "multiply-adds GFLOP/s", "of bfloat16", "triad GB/s"}};
  for (const int threads : std::set<int>{1, cores}) {
    const double fma = measure::fma_gflops(threads);
    const double half = measure::bfloat16_gflops(threads);
    const double triad = measure::triad_gb_per_s(threads);
    rows.push_back({std::to_string(threads), fmt::format("{:.1f}", fma),
                    half > 0 ? fmt::format("{:.1f}", half) : "none", fmt::format("{:.1f}", triad)});
    result["threads"].push_back({{"threads", threads}, {"fma_gflops", fma}, {"triad_gb_per_s", triad}});
    if (half > 0) result["threads"].back()["bfloat16_gflops"] = half;
  }
  if (json) {
    std::printf("%s\n", io::json_text(result).c_str());
    return;
  }
  std::printf("%s, %d cores, %s, bfloat16 %s, %.1f GB, LibTorch %s\n%s", train::cpu_name().c_str(), cores,
              kernels::simd_level().c_str(), fast_bfloat16().c_str(), memory_gb, TORCH_VERSION,
              text_table(rows).c_str());
}

}  // namespace bench_machine

void add_bench(CLI::App& app) {
  auto* const verb =
      app.add_subcommand("bench", "Measure the machine, kernels, a training step and its growth, generation, experts");
  verb->require_subcommand(1);
  verb->footer("Example: siamese bench step bench/s model.residual=siamese");
  auto* const machine = verb->add_subcommand("machine", "Peak of multiply-adds and of memory, one thread and all");
  const auto json = std::make_shared<bool>(false);
  machine->add_flag("--json", *json, "One JSON object on stdout");
  machine->footer("Example: siamese bench machine");
  machine->callback([json] { bench_machine::print_machine(*json); });
  add_bench_kernels(*verb);
  add_bench_step(*verb);
  add_bench_generate(*verb);
  add_bench_experts(*verb);
  add_bench_growth(*verb);
}

}  // namespace siamese::cli

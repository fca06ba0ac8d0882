#include "siamese/cli/step_benchmark.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/base/memory_use.h"
#include "siamese/kernels/simd.h"
#include "siamese/measure/machine.h"
#include "siamese/measure/part_times.h"
#include "siamese/measure/timing.h"
#include "siamese/train/device.h"
#include "siamese/train/trainer.h"

namespace siamese::cli {
namespace step_benchmark {

// One step; its loss and milliseconds.
struct Step {
  double loss = 0;
  double ms = 0;
};

Step timed_step(train::Trainer& trainer) {
  train::StepMetrics metrics;
  const double seconds = measure::seconds_of([&] { metrics = trainer.step(); });
  if (metrics.skipped) throw DivergedError("bench step: the loss or a gradient is not finite");
  return {metrics.loss, seconds * 1e3};
}

std::map<std::string, double> part_times(train::Trainer& trainer, int64_t steps) {
  std::map<std::string, double> mean;
  const double share = 1.0 / static_cast<double>(steps);
  for (int64_t i = 0; i < steps; ++i) {
    const measure::PartTimes times;
    double unaccounted = timed_step(trainer).ms;
    for (const auto& [part, seconds] : times.seconds()) {
      mean[part] += seconds * 1e3 * share;
      unaccounted -= seconds * 1e3;
    }
    mean["other"] += std::max(0.0, unaccounted) * share;
  }
  return mean;
}

train::RunConfig prepared(train::RunConfig config, const StepBenchmarkOptions& options) {
  config.data = {.source = data::Source::random};
  config.train.steps = options.warmup + options.steps + options.part_steps;
  config.train.record_every = 0;
  return config;
}

}  // namespace step_benchmark

std::vector<double> StepComparison::ratios() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < step_ms.size(); ++i) ratios.push_back(step_ms[i] / against_ms[i]);
  return ratios;
}

StepComparison compare_steps(const train::RunConfig& config, const train::RunConfig& against,
                             const StepBenchmarkOptions& options, comm::Group* group) {
  train::Trainer first(step_benchmark::prepared(config, options), false, group);
  train::Trainer second(step_benchmark::prepared(against, options), false, group);
  StepComparison result;
  for (int64_t i = -options.warmup; i < options.steps; ++i) {
    // Who goes first alternates: a machine that gets slower, or a cache that the other one left, favours nobody.
    const bool swapped = i % 2 != 0;
    const double one = step_benchmark::timed_step(swapped ? second : first).ms;
    const double other = step_benchmark::timed_step(swapped ? first : second).ms;
    if (i < 0) continue;
    result.step_ms.push_back(swapped ? other : one);
    result.against_ms.push_back(swapped ? one : other);
  }
  return result;
}

double StepBenchmark::median_ms() const { return measure::quantile(step_ms, 0.5); }

StepBenchmark benchmark_step(train::RunConfig config, const StepBenchmarkOptions& options, comm::Group* group) {
  SIAMESE_INVARIANT(options.steps > 0 && options.warmup >= 0 && options.part_steps >= 0);
  config = step_benchmark::prepared(config, options);
  StepBenchmark result;
  result.threads = at::get_num_threads();
  result.ranks = group == nullptr ? 1 : group->size();
  result.idle_rss_mb = memory_use().resident_mb;
  train::Trainer trainer(config, false, group);
  result.parameters = trainer.model().parameters().count();
  result.tokens = config.train.batch * config.model.context;
  result.step_gflop = (3 * trainer.model().forward_flops(config.train.batch) +
                       train::optimizer_flops(config.optim, trainer.model().parameters())) *
                      1e-9;
  result.state_mb = sizeof(float) * train::numbers_kept(config.optim, trainer.model().parameters()) / (1 << 20);
  for (int64_t i = 0; i < options.warmup; ++i) step_benchmark::timed_step(trainer);
  train::GradientExchange::Times exchanged;
  for (int64_t i = 0; i < options.steps; ++i) {
    const auto step = step_benchmark::timed_step(trainer);
    result.step_ms.push_back(step.ms);
    result.loss = step.loss;
    exchanged.exchanging += trainer.exchange_times().exchanging;
    exchanged.waited += trainer.exchange_times().waited;
  }
  result.exchange_ms = exchanged.exchanging * 1e3 / static_cast<double>(options.steps);
  result.hidden_share = exchanged.hidden_share();
  result.peak_rss_mb = memory_use().peak_mb;
  const at::Device device = train::device_of(config.engine);
  result.device = device.str();
  const bool half = config.engine.precision == ops::Precision::bfloat16 && kernels::has_bfloat16_products();
  result.precision = enum_text(config.engine.precision);
  if (device.is_cpu()) {
    result.fma_gflops = half ? measure::bfloat16_gflops(result.threads) : measure::fma_gflops(result.threads);
    result.fma_gflops *= result.ranks;  // all of them measure at the same time
  }
  result.part_ms = step_benchmark::part_times(trainer, options.part_steps);
  return result;
}

}  // namespace siamese::cli

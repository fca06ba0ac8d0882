// How long a training step takes: the Trainer's own step, on random tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/train/config.h"

namespace siamese::cli {

struct StepBenchmarkOptions {
  int64_t steps = 20;      // timed
  int64_t warmup = 3;      // before them
  int64_t part_steps = 3;  // after them, watched operator by operator; 0 = none
};

struct StepBenchmark {
  int64_t parameters = 0;
  int64_t tokens = 0;  // of a step
  int threads = 0;
  std::string device;
  std::string precision;
  std::vector<double> step_ms;
  double step_gflop = 0;   // matrix products and attention, forward and backward, and products of the update
  double idle_rss_mb = 0;  // before the model was made
  double peak_rss_mb = 0;
  double state_mb = 0;  // parameters, gradients and moments
  // What the CPU gives at best, measured right after the steps; NaN for a step on another device.
  double fma_gflops = std::numeric_limits<double>::quiet_NaN();
  double loss = 0;                        // of the last timed step
  std::map<std::string, double> part_ms;  // of a watched step; what lies outside all operators is in "other"
  // Of several ranks: mean milliseconds in which gradients were exchanged in a step, and the share of them in which
  // backward still ran (train/gradient_exchange.h).
  int ranks = 1;
  double exchange_ms = 0;
  double hidden_share = 0;

  double median_ms() const;
  double tokens_per_s() const { return static_cast<double>(tokens) / median_ms() * 1e3; }
  double gflops() const { return step_gflop / median_ms() * 1e3; }
};

// Steps of two configs in turns, A B B A, in one process: what else happens on the machine happens to both.
struct StepComparison {
  std::vector<double> step_ms;
  std::vector<double> against_ms;
  std::vector<double> ratios() const;  // step / against of each turn
};

// `group`: ranks that take the steps together, all of which call it; null: alone. Each gets its own times.
StepComparison compare_steps(const train::RunConfig& config, const train::RunConfig& against,
                             const StepBenchmarkOptions& options, comm::Group* group = nullptr);

// Data, steps and recording of `config` are replaced; DivergedError when a step is skipped.
StepBenchmark benchmark_step(train::RunConfig config, const StepBenchmarkOptions& options,
                             comm::Group* group = nullptr);

}  // namespace siamese::cli

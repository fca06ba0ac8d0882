#include "siamese/train/sweep_estimate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/duration.h"
#include "siamese/ops/operand.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace {

constexpr int64_t kWorthTiming = 200;  // steps
constexpr int kTimedSteps = 3;         // after one that warms up
constexpr auto kLongestTiming = std::chrono::seconds(10);

int64_t threads_of(const EngineConfig& engine) { return engine.threads > 0 ? engine.threads : core_count(); }

// The median of a few steps that leave no trace; nullopt when the run could not start.
std::optional<double> timed_step(RunConfig config) {
  using Clock = std::chrono::steady_clock;
  config.train.record_every = 0;
  try {
    const ops::PrecisionGuard only_here(config.engine.precision);
    apply_engine(config.engine);
    Trainer trainer(config);
    const auto start = Clock::now();
    double warm_up = trainer.step().step_ms / 1e3;
    std::vector<double> seconds;
    while (seconds.size() < kTimedSteps && Clock::now() - start < kLongestTiming && !trainer.finished()) {
      seconds.push_back(trainer.step().step_ms / 1e3);
    }
    if (seconds.empty()) return warm_up;
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  } catch (const Error&) {  // said when its turn comes
    return std::nullopt;
  }
}

}  // namespace

std::string step_kind(const ConfigTexts& config) {
  std::string kind;
  for (const auto& [key, text] : config) {
    const bool counts = key.starts_with("model.") || key == "train.batch" || key == "train.micro_batch" ||
                        key == "train.ema" || key == "engine.precision" || key == "data.source";
    if (counts) kind += key + "=" + text + "\n";
  }
  return kind;
}

SweepEstimate estimate_sweep(const std::vector<RunToDo>& runs, const std::vector<runs::RecordLine>& ended, int64_t jobs,
                             MeasureSteps measure) {
  std::map<std::pair<std::string, int64_t>, double> step_seconds;  // by kind and threads
  const std::string cpu = cpu_name();
  for (const runs::RecordLine& line : ended) {
    const bool one_maker = line.stretches.size() == 1;  // of several nobody knows whose the median is
    if (!one_maker || line.stretches.front().cpu != cpu || !std::isfinite(line.summary.step_ms)) continue;
    step_seconds[{step_kind(line.config), line.stretches.front().threads}] = line.summary.step_ms / 1e3;
  }
  struct Kind {
    const RunConfig* config = nullptr;
    std::vector<int64_t> steps;
  };
  std::map<std::pair<std::string, int64_t>, Kind> kinds;
  SweepEstimate estimate{.runs = runs.size(), .jobs = jobs};
  for (const RunToDo& one : runs) {
    const RunConfig& config = one.run->config;
    const int64_t steps = std::max<int64_t>(0, config.train.steps - one.steps_done);
    Kind& kind = kinds[{step_kind(result_config(config)), threads_of(config.engine)}];
    kind.config = &config;
    kind.steps.push_back(steps);
    estimate.steps += steps;
  }
  double longest = 0;
  for (const auto& [key, kind] : kinds) {
    int64_t steps = 0;
    for (const int64_t of_run : kind.steps) steps += of_run;
    const auto known = step_seconds.find(key);
    std::optional<double> seconds;
    if (known != step_seconds.end()) {
      seconds = known->second;
    } else if (measure == MeasureSteps::always || (measure == MeasureSteps::worthwhile && steps >= kWorthTiming)) {
      seconds = timed_step(*kind.config);
      estimate.timed += seconds ? 1 : 0;
    }
    if (!seconds) {
      estimate.unknown += steps;
      continue;
    }
    estimate.seconds += *seconds * static_cast<double>(steps);
    longest =
        std::max(longest, *seconds * static_cast<double>(*std::max_element(kind.steps.begin(), kind.steps.end())));
  }
  estimate.seconds = std::max(longest, estimate.seconds / static_cast<double>(std::max<int64_t>(1, jobs)));
  return estimate;
}

std::string SweepEstimate::text() const {
  const std::string what = fmt::format("{} run{} to do, {} steps", runs, runs == 1 ? "" : "s", steps);
  if (runs == 0) return "nothing to do";
  if (unknown == steps) return what + ": how long they take is not known yet";
  std::string how = fmt::format("{}: about {}", what, duration_text(seconds));
  if (jobs > 1) how += fmt::format(" with {} at once", jobs);
  how += timed > 0 ? " (steps were timed" : " (from runs that ended";
  if (unknown > 0) how += fmt::format("; {} steps of other models not counted", unknown);
  return how + "; evaluations come on top)";
}

}  // namespace siamese::train

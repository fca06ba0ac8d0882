#include "siamese/report/judgement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "siamese/runs/outcome.h"

namespace siamese::report {

namespace {

void mark_diverged(RunRecord& run) {
  if (run.state != RunState::finished) return;
  const bool ends_finite = run.metrics.loss.empty() || std::isfinite(run.metrics.loss.back());
  std::string why = runs::divergence({.steps = run.step,
                                      .first_loss = run.first_loss(),
                                      .train_loss = run.final_train_loss(),
                                      .ends_finite = ends_finite,
                                      .from_scratch = runs::starts_from_scratch(run.config)});
  if (why.empty()) return;
  run.state = RunState::diverged;
  run.message = std::move(why);
}

// The same targets give the same baseline to the bit, on one machine; another may differ in the last digits.
std::pair<std::string, double> same_task(const RunRecord& run) {
  return {run.family, std::round(run.baseline() * 1e4)};
}

}  // namespace

std::vector<RunRecord> judge(std::vector<RunRecord> runs) {
  std::map<std::pair<std::string, double>, double> best;
  const auto judged = [](const RunRecord& run) {
    return run.state == RunState::finished && std::isfinite(run.baseline()) && std::isfinite(run.final_val_loss());
  };
  for (RunRecord& run : runs) {
    mark_diverged(run);
    if (!judged(run)) continue;
    double& lowest = best.emplace(same_task(run), HUGE_VAL).first->second;
    lowest = std::min(lowest, run.final_val_loss());
  }
  for (RunRecord& run : runs) {
    if (!judged(run)) continue;
    const double way = run.baseline() - best.at(same_task(run));
    const double gone = run.baseline() - run.final_val_loss();
    run.progress = way > 0 ? gone / way : 0;
    run.stuck = run.progress < kStuckProgress || gone < kStuckGain * run.baseline();
  }
  return runs;
}

}  // namespace siamese::report

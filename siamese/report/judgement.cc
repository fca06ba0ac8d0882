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

}  // namespace

HeldOutTask held_out_task(const RunRecord& run) { return {run.family, std::round(run.baseline() * 1e4) / 1e4}; }

std::vector<HeldOutTask> tasks_of(const std::vector<RunRecord>& runs, const std::string& family) {
  std::vector<HeldOutTask> found;
  for (const RunRecord& run : runs) {
    if (run.family != family || !std::isfinite(run.baseline())) continue;
    const bool known =
        std::any_of(found.begin(), found.end(), [&](const HeldOutTask& task) { return is_judged_on(run, task); });
    if (!known) found.push_back(held_out_task(run));
  }
  return found;
}

// Two of the rounded numbers apart is more than last digits.
bool is_judged_on(const RunRecord& run, const HeldOutTask& task) {
  const HeldOutTask own = held_out_task(run);
  return own.family == task.family && std::fabs(own.baseline - task.baseline) < 1.5e-4;
}

std::vector<RunRecord> judge(std::vector<RunRecord> runs) {
  std::map<HeldOutTask, double> best;
  const auto judged = [](const RunRecord& run) {
    return run.state == RunState::finished && std::isfinite(run.baseline()) && std::isfinite(run.final_val_loss());
  };
  for (RunRecord& run : runs) {
    mark_diverged(run);
    if (!judged(run)) continue;
    double& lowest = best.emplace(held_out_task(run), HUGE_VAL).first->second;
    lowest = std::min(lowest, run.final_val_loss());
  }
  for (RunRecord& run : runs) {
    if (!judged(run)) continue;
    const double way = run.baseline() - best.at(held_out_task(run));
    const double gone = run.baseline() - run.final_val_loss();
    run.progress = way > 0 ? gone / way : 0;
    run.stuck = run.progress < kStuckProgress || gone < kStuckGain * run.baseline();
  }
  return runs;
}

}  // namespace siamese::report

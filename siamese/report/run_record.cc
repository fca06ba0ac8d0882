#include "siamese/report/run_record.h"

#include <algorithm>
#include <cmath>

#include "siamese/base/enum_text.h"
#include "siamese/report/statistics.h"

namespace siamese {

template <>
struct EnumText<report::RunState> {
  static constexpr EnumNames<report::RunState, 6> names{{{report::RunState::not_started, "not started"},
                                                         {report::RunState::running, "running"},
                                                         {report::RunState::stopped, "stopped"},
                                                         {report::RunState::finished, "finished"},
                                                         {report::RunState::diverged, "diverged"},
                                                         {report::RunState::unknown, "unknown"}}};
};

}  // namespace siamese

namespace siamese::report {

std::string_view state_text(RunState state) { return enum_text(state); }

RunState state_from_text(std::string_view text) { return enum_from_text<RunState>(text).value_or(RunState::unknown); }

double EvalRow::accuracy() const {
  return count > 0 ? static_cast<double>(correct) / static_cast<double>(count) : kMissing;
}

const EvalRow* RunRecord::last_accuracy() const {
  const auto found = std::find_if(evals.rbegin(), evals.rend(), [](const EvalRow& row) { return row.count > 0; });
  return found == evals.rend() ? nullptr : &*found;
}

double RunRecord::first_loss() const {
  if (recorded) return recorded->first_loss;
  return metrics.step.empty() || metrics.step.front() != 1 ? kMissing : metrics.loss.front();
}

double RunRecord::final_val_loss() const { return evals.empty() ? kMissing : evals.back().loss; }

double RunRecord::final_accuracy() const {
  const EvalRow* row = last_accuracy();
  return row ? row->accuracy() : kMissing;
}

double RunRecord::final_train_loss() const {
  if (recorded) return recorded->train_loss;
  constexpr size_t kWindow = 50;
  const auto& loss = metrics.loss;
  double sum = 0;
  size_t count = 0;
  for (size_t i = loss.size() - std::min(loss.size(), kWindow); i < loss.size(); ++i) {
    if (!std::isfinite(loss[i])) continue;
    sum += loss[i];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kMissing;
}

double RunRecord::median_tokens_per_s() const {
  if (recorded) return recorded->tokens_per_s;
  std::vector<double> speeds;
  for (size_t i = metrics.tokens_per_s.size() > 1 ? 1 : 0; i < metrics.tokens_per_s.size(); ++i) {
    if (std::isfinite(metrics.tokens_per_s[i])) speeds.push_back(metrics.tokens_per_s[i]);
  }
  return median(std::move(speeds));
}

double RunRecord::seconds() const {
  if (recorded) return recorded->seconds;
  double sum = 0;
  for (double ms : metrics.step_ms) sum += std::isfinite(ms) ? ms / 1000 : 0;
  return metrics.step_ms.empty() ? kMissing : sum;
}

}  // namespace siamese::report

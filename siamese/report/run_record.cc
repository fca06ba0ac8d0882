#include "siamese/report/run_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "siamese/base/enum_text.h"
#include "siamese/report/measures.h"

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

bool RunRecord::judges_average() const {
  const auto says = [&](const char* key, const char* text) {
    return std::find(config.begin(), config.end(), std::pair<std::string, std::string>(key, text)) != config.end();
  };
  return says("eval.averaged", "true") && !says("train.ema", "0");
}

std::string family_of(const std::vector<std::pair<std::string, std::string>>& config) {
  for (const auto& [key, text] : config) {
    if (key == "model.family" && !text.empty()) return text;
  }
  return "lm";
}

std::string_view state_text(RunState state) { return enum_text(state); }

RunState state_of(runs::RunStatus status) {
  switch (status) {
    case runs::RunStatus::running:
      return RunState::running;
    case runs::RunStatus::finished:
      return RunState::finished;
    case runs::RunStatus::diverged:
      return RunState::diverged;
    case runs::RunStatus::stopped:
      break;
  }
  return RunState::stopped;
}

Measures measures_of(const runs::NamedNumbers& numbers) {
  Measures measures;
  for (const auto& [name, value] : numbers) {
    if (is_measure(name) && std::isfinite(value)) measures[name] = value;
  }
  return measures;
}

std::span<const StepColumn> step_columns() {
  static constexpr std::array<StepColumn, 12> kColumns{{{"loss", &StepColumns::loss},
                                                        {"grad_norm", &StepColumns::grad_norm},
                                                        {"lr", &StepColumns::lr},
                                                        {"tokens_per_s", &StepColumns::tokens_per_s},
                                                        {"step_ms", &StepColumns::step_ms},
                                                        {"tokens", &StepColumns::tokens},
                                                        {"samples_per_s", &StepColumns::samples_per_s},
                                                        {"balance_loss", &StepColumns::balance_loss},
                                                        {"router_z_loss", &StepColumns::router_z_loss},
                                                        {"expert_max_load", &StepColumns::expert_max_load},
                                                        {"mse", &StepColumns::mse},
                                                        {"vlb", &StepColumns::vlb}}};
  return kColumns;
}

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

double RunRecord::baseline() const {
  if (recorded) return recorded->baseline;
  const auto found =
      std::find_if(evals.rbegin(), evals.rend(), [](const EvalRow& row) { return std::isfinite(row.baseline); });
  return found == evals.rend() ? kMissing : found->baseline;
}

double RunRecord::final_accuracy() const {
  const EvalRow* row = last_accuracy();
  return row ? row->accuracy() : kMissing;
}

double RunRecord::final_train_loss() const {
  return recorded ? recorded->train_loss : runs::mean_of_last(metrics.loss);
}

double RunRecord::median_tokens_per_s() const {
  return recorded ? recorded->tokens_per_s : runs::median_after_first(metrics.tokens_per_s);
}

double RunRecord::median_samples_per_s() const {
  return recorded ? recorded->samples_per_s : runs::median_after_first(metrics.samples_per_s);
}

Measures RunRecord::final_measures() const {
  if (recorded) return recorded->measures;
  Measures last;
  for (const EvalRow& row : evals) {
    for (const auto& [name, value] : row.measures) last[name] = value;
  }
  const double load = runs::mean_of_last(metrics.expert_max_load);
  if (std::isfinite(load)) last["expert_max_load"] = load;
  return last;
}

double RunRecord::seconds() const { return recorded ? recorded->seconds : runs::seconds_of(metrics.step_ms); }

}  // namespace siamese::report

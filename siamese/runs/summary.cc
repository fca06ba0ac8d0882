#include "siamese/runs/summary.h"

#include <algorithm>
#include <cmath>

#include "siamese/base/check.h"
#include "siamese/io/run_dir.h"
#include "siamese/runs/lines.h"
#include "siamese/runs/step_record.h"

namespace siamese::runs {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFineSteps = 10;
constexpr size_t kCoarsePieces = 50;

void read_status(const fs::path& run_dir, RunSummary& summary) {
  const std::string file = (run_dir / io::kRunFile).string();
  const auto info = read_run_file(run_dir);
  if (!info) throw DataError(file + ": missing");
  if (info->status != RunStatus::finished && info->status != RunStatus::diverged) {
    throw DataError(file + ": status: expected a run that ended (finished or diverged), got '" +
                    std::string(enum_text(info->status)) + "'");
  }
  summary.status = info->status;
  summary.message = info->message;
  summary.parameters = info->parameters;
  summary.step_flops = info->step_flops;
}

void read_metrics(const fs::path& path, RunSummary& summary) {
  std::vector<double> loss, grad_norm, step_ms, tokens_per_s, samples_per_s, expert_load;
  for_each_line(path, [&](std::string_view line, const std::string& where, Notes* notes) {
    const StepRecord step = read_step(line, where, notes);
    loss.push_back(step.loss);
    grad_norm.push_back(step.grad_norm);
    step_ms.push_back(step.step_ms);
    tokens_per_s.push_back(step.tokens_per_s);
    samples_per_s.push_back(step.samples_per_s);
    expert_load.push_back(number_of(step.extra, "expert_max_load"));
  });
  if (loss.empty()) throw DataError(path.string() + ": expected a line for each step, got none");
  summary.steps = static_cast<int64_t>(loss.size());
  summary.first_loss = loss.front();
  summary.train_loss = mean_of_last(loss);
  const double load = mean_of_last(expert_load);
  if (std::isfinite(load)) summary.measures.emplace_back("expert_max_load", load);
  summary.seconds = seconds_of(step_ms);
  summary.step_ms = median_after_first(step_ms);
  summary.tokens_per_s = median_after_first(tokens_per_s);
  summary.samples_per_s = median_after_first(samples_per_s);
  summary.curve = thin_curve(loss, grad_norm);
}

void read_evaluations(const fs::path& path, RunSummary& summary) {
  const NamedNumbers of_steps = summary.measures;
  for_each_line(path, [&](std::string_view line, const std::string& where, Notes* notes) {
    const EvalRecord eval = read_eval(line, where, notes);
    summary.measures = eval.measures();
    summary.measures.insert(summary.measures.end(), of_steps.begin(), of_steps.end());
    summary.eval_step = eval.step;
    summary.val_loss = eval.loss;
    summary.perplexity = eval.perplexity;
    summary.baseline = eval.baseline;
    if (eval.accuracy) summary.accuracy = eval.accuracy;
  });
}

}  // namespace

ThinnedCurve thin_curve(const std::vector<double>& loss, const std::vector<double>& grad_norm) {
  SIAMESE_INVARIANT(loss.size() == grad_norm.size());
  const size_t steps = loss.size();
  const size_t coarse = steps - std::min(steps, kFineSteps);
  const size_t width = std::max<size_t>(1, (coarse + kCoarsePieces - 1) / kCoarsePieces);
  ThinnedCurve curve;
  for (size_t from = 0; from < steps;) {
    const size_t to = std::min(steps, from < kFineSteps ? from + 1 : from + width);
    curve.last_step.push_back(static_cast<int64_t>(to));
    curve.loss.push_back(finite_mean(loss, from, to));
    curve.grad_norm.push_back(finite_mean(grad_norm, from, to));
    from = to;
  }
  return curve;
}

RunSummary summarise_run(const fs::path& run_dir) {
  RunSummary summary;
  read_status(run_dir, summary);
  read_metrics(run_dir / io::kMetricsFile, summary);
  read_evaluations(run_dir / io::kEvalFile, summary);
  return summary;
}

}  // namespace siamese::runs

#include "siamese/train/run_summary.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"

namespace siamese::train {
namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr size_t kFineSteps = 10;
constexpr size_t kCoarsePoints = 50;
constexpr size_t kLossWindow = 50;

double number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : RunSummary::kNone;
}

void add_measure(Measures& measures, const std::string& name, double value) {
  if (std::isfinite(value)) measures.emplace_back(name, value);
}

double finite_mean(const std::vector<double>& values, size_t from, size_t to) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = from; i < to; ++i) {
    if (!std::isfinite(values[i])) continue;
    sum += values[i];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : RunSummary::kNone;
}

double median_after_first(std::vector<double> values) {
  if (values.size() > 1) values.erase(values.begin());
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return RunSummary::kNone;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : values[half - 1] + (values[half] - values[half - 1]) / 2;
}

void read_status(const fs::path& path, RunSummary& summary) {
  const json object = io::read_ordered_json(io::read_file(path), path.string());
  if (!object.is_object()) throw DataError(path.string() + ": expected a JSON object");
  const std::string status = object.value("status", "");
  const auto known = enum_from_text<RunStatus>(status);
  if (known != RunStatus::finished && known != RunStatus::diverged) {
    throw DataError(path.string() + ": status: expected a run that ended (finished or diverged), got '" + status + "'");
  }
  summary.status = *known;
  summary.message = object.value("message", "");
  summary.parameters = object.value("parameters", int64_t{0});
}

void read_metrics(const fs::path& path, RunSummary& summary) {
  std::vector<double> loss, grad_norm, step_ms, tokens_per_s, samples_per_s, expert_load;
  for (const std::string& line : io::read_json_lines(path)) {
    const json object = io::read_ordered_json(line, path.string());
    loss.push_back(number(object, "loss"));
    grad_norm.push_back(number(object, "grad_norm"));
    step_ms.push_back(number(object, "step_ms"));
    tokens_per_s.push_back(number(object, "tokens_per_s"));
    samples_per_s.push_back(number(object, "samples_per_s"));
    expert_load.push_back(number(object, "expert_max_load"));
  }
  if (loss.empty()) throw DataError(path.string() + ": expected a line for each step, got none");
  summary.steps = static_cast<int64_t>(loss.size());
  summary.first_loss = loss.front();
  const size_t window = loss.size() - std::min(loss.size(), kLossWindow);
  summary.train_loss = finite_mean(loss, window, loss.size());
  add_measure(summary.measures, "expert_max_load", finite_mean(expert_load, window, loss.size()));
  summary.seconds = 0;
  for (const double ms : step_ms) summary.seconds += std::isfinite(ms) ? ms / 1000 : 0;
  summary.step_ms = median_after_first(step_ms);
  summary.tokens_per_s = median_after_first(tokens_per_s);
  summary.samples_per_s = median_after_first(samples_per_s);
  summary.curve = thin_curve(loss, grad_norm);
}

// The measures of one line of eval.jsonl.
Measures measures_of(const json& object) {
  Measures measures;
  const json of_images = object.value("classification", json::object());
  for (const char* const name : {"top1", "top5"}) {
    const json counts = of_images.value(name, json::object());
    add_measure(measures, name, number(counts, "correct") / number(counts, "count"));
  }
  const json terms = object.value("diffusion", json::object());
  for (const char* const name : {"mse", "vlb"}) add_measure(measures, name, number(terms, name));
  const json samples = object.value("samples", json::object());
  for (const char* const name : {"feature_distance", "class_agreement"}) {
    add_measure(measures, name, number(samples, name));
  }
  return measures;
}

void read_evaluations(const fs::path& path, RunSummary& summary) {
  const Measures of_steps = summary.measures;
  for (const std::string& line : io::read_json_lines(path)) {
    const json object = io::read_ordered_json(line, path.string());
    summary.measures = measures_of(object);
    summary.measures.insert(summary.measures.end(), of_steps.begin(), of_steps.end());
    summary.eval_step = object.value("step", int64_t{0});
    summary.val_loss = number(object, "loss");
    summary.perplexity = number(object, "perplexity");
    if (object.contains("accuracy")) summary.accuracy = io::json_text(object["accuracy"]);
  }
}

}  // namespace

ThinnedCurve thin_curve(const std::vector<double>& loss, const std::vector<double>& grad_norm) {
  SIAMESE_INVARIANT(loss.size() == grad_norm.size());
  const size_t steps = loss.size();
  const size_t coarse = steps - std::min(steps, kFineSteps);
  const size_t width = std::max<size_t>(1, (coarse + kCoarsePoints - 1) / kCoarsePoints);
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
  read_status(run_dir / io::kRunFile, summary);
  read_metrics(run_dir / io::kMetricsFile, summary);
  read_evaluations(run_dir / io::kEvalFile, summary);
  return summary;
}

}  // namespace siamese::train

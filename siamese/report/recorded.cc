#include "siamese/report/recorded.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "siamese/report/eval_reader.h"
#include "siamese/runs/lines.h"
#include "siamese/runs/record_line.h"

namespace siamese::report {

namespace {

int64_t planned_steps(const RunRecord& run) {
  const std::string* const text = config::find_text(run.config, "train.steps");
  int64_t steps = 0;
  const bool read =
      text != nullptr && std::from_chars(text->data(), text->data() + text->size(), steps).ec == std::errc();
  return read ? steps : run.step;
}

void take_curve(const runs::ThinnedCurve& curve, StepColumns& columns) {
  columns.step = curve.last_step;
  const std::vector<double> unknown(curve.last_step.size(), kMissing);
  for (const StepColumn& column : step_columns()) columns.*column.values = unknown;
  columns.loss = curve.loss;
  columns.grad_norm = curve.grad_norm;
}

// Of lines from before bits per byte were recorded: where a token is a byte, the loss tells them.
Measures measures_of_line(const runs::RecordLine& line) {
  Measures measures = measures_of(line.summary.measures);
  const std::string* const source = config::find_text(line.config, "data.source");
  const std::string* const mix = config::find_text(line.config, "data.mix");
  const bool of_bytes = source != nullptr && *source == "text" && (mix == nullptr || *mix == "[]");
  if (of_bytes && std::isfinite(line.summary.val_loss)) {
    measures.emplace(runs::kBitsPerByte, line.summary.val_loss * std::numbers::log2e);
  }
  return measures;
}

RunRecord run_of(const runs::RecordLine& line) {
  const runs::RunSummary& summary = line.summary;
  RunRecord run;
  run.dir = line.dir;
  run.state = state_of(summary.status);
  run.variant = run.label = line.variant;
  run.scheme = line.scheme;
  run.message = summary.message;
  run.lr = line.lr;
  run.seed = static_cast<int64_t>(line.seed);
  run.step = summary.steps;
  run.parameters = summary.parameters;
  run.step_flops = summary.step_flops;
  run.config = line.config;
  for (const auto& [key, text] : run.config) run.config_text += key + ": " + text + "\n";
  run.steps = planned_steps(run);
  run.family = family_of(run.config);
  run.data = line.data;
  run.stretches = line.stretches;
  run.builds = runs::builds_of(line.stretches);
  const Measures measures = measures_of_line(line);
  if (summary.eval_step > 0) {
    runs::EvalRecord last;
    last.step = summary.eval_step;
    last.loss = summary.val_loss;
    last.accuracy = summary.accuracy;
    run.evals.push_back(row_of(last));
    run.evals.back().measures = measures;
  }
  run.recorded = RecordedNumbers{.first_loss = summary.first_loss,
                                 .train_loss = summary.train_loss,
                                 .tokens_per_s = summary.tokens_per_s,
                                 .seconds = summary.seconds,
                                 .samples_per_s = summary.samples_per_s,
                                 .measures = measures,
                                 .baseline = summary.baseline};
  take_curve(summary.curve, run.metrics);
  return run;
}

}  // namespace

std::map<std::string, RunRecord> read_recorded(const std::filesystem::path& file) {
  std::map<std::string, RunRecord> found;
  runs::for_each_line(file, [&](std::string_view line, const std::string& where, runs::Notes*) {
    RunRecord run = run_of(runs::read_record_line(line, where));
    const std::string dir = run.dir;
    found.emplace(dir, std::move(run));
  });
  return found;
}

}  // namespace siamese::report

#include "siamese/report/step_reader.h"

#include <string_view>
#include <utility>

#include "siamese/report/snapshots.h"
#include "siamese/runs/lines.h"

namespace siamese::report {

namespace {

// A resumed run writes some steps again: the newer line wins.
void forget_from(int64_t step, StepColumns& columns) {
  while (!columns.step.empty() && columns.step.back() >= step) {
    columns.step.pop_back();
    for (const StepColumn& column : step_columns()) (columns.*column.values).pop_back();
  }
}

double column_value(const runs::StepRecord& record, std::string_view key) {
  if (key == "loss") return record.loss;
  if (key == "grad_norm") return record.grad_norm;
  if (key == "lr") return record.lr;
  if (key == "tokens_per_s") return record.tokens_per_s;
  if (key == "samples_per_s") return record.samples_per_s;
  if (key == "step_ms") return record.step_ms;
  if (key == "tokens") return record.tokens > 0 ? static_cast<double>(record.tokens) : kMissing;
  return runs::number_of(record.extra, std::string(key));
}

// Older lines give no reason: then it was a number that is not finite.
bool was_outlier(const runs::StepRecord& record) {
  return record.skip_reason == "loss" || record.skip_reason == "grad_norm";
}

}  // namespace

void read_metrics(const std::filesystem::path& path, RunRecord& run) {
  StepColumns& columns = run.metrics;
  Snapshots snapshots;
  const auto take = [&](std::string_view line, const std::string& where, runs::Notes* notes) {
    runs::StepRecord record = runs::read_step(line, where, notes);
    if (!columns.step.empty() && record.step <= columns.step.back()) {
      forget_from(record.step, columns);
      snapshots.forget_from(record.step);
    }
    columns.step.push_back(record.step);
    for (const StepColumn& column : step_columns()) {
      (columns.*column.values).push_back(column_value(record, column.key));
    }
    if (record.skipped) ++columns.skipped;
    if (record.skipped && was_outlier(record)) ++columns.outliers;
    snapshots.take(std::move(record));
  };
  runs::for_each_line(path, take, &run.notes);
  run.snapshots = snapshots.list();
  for (const std::string& note : snapshots.notes()) run.notes.push_back(path.string() + ": " + note);
}

}  // namespace siamese::report

// What a run recorded, as columns of numbers.
#include <map>

#include "python/binding/binding.h"
#include <pybind11/numpy.h>

#include "siamese/base/check.h"
#include "siamese/report/judgement.h"
#include "siamese/report/reader.h"
#include "siamese/report/report.h"

namespace siamese::python {
namespace {

template <class T>
py::array_t<T> column(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::dict steps_of(const report::StepColumns& metrics) {
  py::dict columns;
  columns["step"] = column(metrics.step);
  for (const auto& [key, values] : report::step_columns()) {
    const auto& numbers = metrics.*values;
    if (numbers.size() == metrics.step.size()) columns[key] = column(numbers);
  }
  return columns;
}

py::dict evals_of(const std::vector<report::EvalRow>& evals) {
  std::vector<int64_t> step;
  std::vector<double> loss, accuracy;
  std::map<std::string, std::vector<double>> measures;
  bool has_accuracy = false;
  for (const auto& row : evals) {
    for (const auto& [name, value] : row.measures) measures.try_emplace(name, evals.size(), report::kMissing);
    has_accuracy = has_accuracy || row.count > 0;
  }
  for (const auto& row : evals) {
    for (const auto& [name, value] : row.measures) measures[name][step.size()] = value;
    step.push_back(row.step);
    loss.push_back(row.loss);
    accuracy.push_back(row.count > 0 ? row.accuracy() : report::kMissing);
  }
  py::dict columns;
  columns["step"] = column(step);
  columns["loss"] = column(loss);
  if (has_accuracy) columns["accuracy"] = column(accuracy);
  for (const auto& [name, values] : measures) columns[py::str(name)] = column(values);
  return columns;
}

py::dict read_run(const std::string& path) {
  const report::Collection collection = report::read_collection(path);
  if (collection.is_sweep) {
    throw UsageError(path + ": is the folder of a sweep, not a run: read one of its runs, " +
                     (collection.runs.empty() ? "of which it has none" : "such as " + collection.runs.front().dir));
  }
  const report::RunRecord& run = collection.runs.front();
  py::dict record;
  record["steps"] = steps_of(run.metrics);
  record["evals"] = evals_of(run.evals);
  record["status"] = std::string(report::state_text(run.state));
  record["scheme"] = run.scheme;
  record["family"] = run.family;
  record["step"] = run.step;
  record["parameters"] = run.parameters;
  record["config"] = std::map<std::string, std::string>(run.config.begin(), run.config.end());
  record["message"] = run.message;
  record["notes"] = run.notes;
  return record;
}

// A row for each planned run.
py::dict runs_of(const std::vector<report::RunRecord>& runs) {
  py::dict columns;
  const auto add = [&](const std::string& name, const auto& value_of) {
    std::vector<std::decay_t<decltype(value_of(runs.front()))>> values;
    for (const auto& run : runs) values.push_back(value_of(run));
    if constexpr (std::is_arithmetic_v<typename decltype(values)::value_type>) {
      columns[py::str(name)] = column(values);
    } else {
      columns[py::str(name)] = py::module_::import("numpy").attr("array")(values);
    }
  };
  using Run = const report::RunRecord&;
  add("dir", [](Run run) { return run.dir; });
  add("variant", [](Run run) { return run.variant; });
  add("family", [](Run run) { return run.family; });
  add("lr", [](Run run) { return run.lr; });
  add("seed", [](Run run) { return run.seed; });
  add("status", [](Run run) { return std::string(report::state_text(run.state)); });
  add("step", [](Run run) { return run.step; });
  add("val_loss", [](Run run) { return run.final_val_loss(); });
  add("train_loss", [](Run run) { return run.final_train_loss(); });
  add("accuracy", [](Run run) { return run.final_accuracy(); });
  add("seconds", [](Run run) { return run.seconds(); });
  std::map<std::string, double> measured;
  for (const auto& run : runs) measured.merge(run.final_measures());
  for (const auto& [name, unused] : measured) {
    add(name, [key = name](Run run) {
      const auto measures = run.final_measures();
      const auto found = measures.find(key);
      return found != measures.end() ? found->second : report::kMissing;
    });
  }
  return columns;
}

py::dict read_sweep(const std::string& path) {
  report::Collection collection = report::read_collection(path);
  if (!collection.is_sweep) throw UsageError(path + ": is a run, not the folder of a sweep: read_run reads it");
  py::dict record;
  record["name"] = collection.name;
  record["runs"] = runs_of(report::judge(std::move(collection.runs)));
  record["csv"] = report::results_csv({path});
  record["summary"] = report::summary_table(path);
  return record;
}

}  // namespace

void add_records(py::module_& module) {
  module.def("read_run", &read_run, py::arg("path"));
  module.def("read_sweep", &read_sweep, py::arg("path"));
}

}  // namespace siamese::python

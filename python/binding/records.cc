// What a run recorded, as columns of numbers.
#include <map>

#include "python/binding/binding.h"
#include <pybind11/numpy.h>

#include "siamese/base/check.h"
#include "siamese/report/reader.h"

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

}  // namespace

void add_records(py::module_& module) { module.def("read_run", &read_run, py::arg("path")); }

}  // namespace siamese::python

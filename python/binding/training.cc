// Runs of the engine inside a Python process.
#include "python/binding/binding.h"
#include "python/binding/configs.h"
#include "python/binding/watcher.h"

#include "siamese/base/check.h"
#include "siamese/report/report.h"

namespace siamese::python {
namespace {

py::dict train_run(const std::string& text, const std::string& out, bool overwrite, py::object watcher) {
  const train::RunConfig config = stored_config(text);
  if (out.empty()) throw UsageError("out: expected a folder to make, got nothing");
  py::dict told = run_watched(std::move(watcher), [&](Watcher& watching) {
    return train::start_run(config, out, overwrite, "", watching.hooks());
  });
  told["dir"] = out;
  return told;
}

py::dict resume_run(const std::string& run, bool accept_changed_data, py::object watcher) {
  py::dict told = run_watched(std::move(watcher), [&](Watcher& watching) {
    return train::resume_run(run, watching.hooks(), accept_changed_data);
  });
  told["dir"] = run;
  return told;
}

std::string write_report(const std::string& path) { return report::write_report(path).string(); }

}  // namespace

void add_training(py::module_& module) {
  module.def("train", &train_run, py::arg("text"), py::arg("out"), py::arg("overwrite"), py::arg("watcher"));
  module.def("resume", &resume_run, py::arg("run"), py::arg("accept_changed_data"), py::arg("watcher"));
  module.def("report", &write_report, py::arg("path"), py::call_guard<py::gil_scoped_release>());
}

}  // namespace siamese::python

// Sweeps of the engine inside a Python process, one run after the other.
#include <filesystem>

#include "python/binding/binding.h"
#include "python/binding/watcher.h"

#include "siamese/base/check.h"
#include "siamese/config/load.h"
#include "siamese/report/report.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/sweep.h"

namespace siamese::python {
namespace {

namespace fs = std::filesystem;

train::SweepPlan planned(const std::string& source, bool is_text, const std::vector<std::string>& overrides,
                         const std::vector<std::string>& folders) {
  const std::vector<fs::path> places(folders.begin(), folders.end());
  if (is_text) return train::plan_sweep_text(source, "sweep", overrides, places);
  return train::plan_sweep(config::find_config(source, places), overrides, places);
}

// `out` empty: runs/<name of the sweep>. `record` empty: what the sweep names, unless an override changes results.
py::dict run_sweep(const std::string& source, bool is_text, const std::vector<std::string>& overrides,
                   const std::vector<std::string>& folders, const std::string& out, const std::string& record,
                   bool fresh, py::object watcher) {
  train::SweepPlan plan = planned(source, is_text, overrides, folders);
  const fs::path folder = out.empty() ? fs::path("runs") / plan.name : fs::path(out);
  const bool other_runs = !train::deciding_override(overrides).empty();
  const fs::path record_file = !record.empty() ? fs::path(record) : other_runs ? fs::path() : plan.record;
  train::Sweep sweep(std::move(plan), {.out = folder, .record = record_file, .jobs = 1, .fresh = fresh});
  sweep.check();
  py::dict told = run_watched(std::move(watcher), [&](Watcher& watching) {
    train::SweepHooks hooks;
    hooks.run = watching.hooks();
    hooks.say = [&](const std::string& text) { watching.said(text); };
    const train::RunResult result = sweep.train(hooks);
    report::write_report(folder);
    return result;
  });
  told["dir"] = folder.string();
  return told;
}

}  // namespace

void add_sweeps(py::module_& module) {
  module.def("sweep", &run_sweep, py::arg("source"), py::arg("is_text"), py::arg("overrides"), py::arg("folders"),
             py::arg("out"), py::arg("record"), py::arg("fresh"), py::arg("watcher"));
}

}  // namespace siamese::python

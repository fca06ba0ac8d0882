// A run of the engine that Python watches.
#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "python/binding/binding.h"

#include <ATen/Parallel.h>

#include "siamese/ops/mode.h"
#include "siamese/ops/operand.h"
#include "siamese/train/run.h"

namespace siamese::python {

// A run sets threads, kernels and precision for the whole process; the caller gets back what was.
class EngineAsBefore {
 public:
  EngineAsBefore() = default;
  ~EngineAsBefore() { at::set_num_threads(threads_); }
  EngineAsBefore(const EngineAsBefore&) = delete;
  EngineAsBefore& operator=(const EngineAsBefore&) = delete;

 private:
  int threads_ = at::get_num_threads();
  ops::ModeGuard mode_{ops::mode()};
  ops::PrecisionGuard precision_{ops::precision()};
};

// Hands what happens to a Python function (None: warnings alone, as Python's). What that raises, and Ctrl-C, stop the
// run after the current step; it saves, and then the exception goes on.
class Watcher : public train::Observer {
 public:
  explicit Watcher(py::object function) : function_(std::move(function)) {}
  ~Watcher() override {
    const py::gil_scoped_acquire gil;
    function_ = py::object();
    raised_.reset();
  }

  train::RunHooks hooks() {
    return {this, [this] { return stop_signal(); }};
  }

  void started(const std::string& what) override { say("started", what); }
  void said(const std::string& what) { say("said", what); }  // of a sweep
  void saved(const std::filesystem::path& checkpoint) override { say("saved", checkpoint.string()); }
  void warned(const std::string& message) override {
    const py::gil_scoped_acquire gil;
    if (!function_.is_none()) return say("warned", message);
    guarded([&] {
      if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) != 0) throw py::error_already_set();
    });
  }
  void stepped(const train::StepMetrics& metrics, int64_t steps) override {
    tell("step", [&] {
      py::dict numbers;
      numbers["step"] = metrics.step;
      numbers["steps"] = steps;
      numbers["tokens"] = metrics.tokens;
      numbers["loss"] = metrics.loss;
      numbers["grad_norm"] = metrics.grad_norm;
      numbers["lr"] = metrics.lr;
      numbers["tokens_per_s"] = metrics.tokens_per_s;
      numbers["samples_per_s"] = metrics.samples_per_s;
      numbers["skipped"] = metrics.skipped;
      for (const auto& [name, value] : metrics.extra) numbers[py::str(name)] = value;
      return numbers;
    });
  }
  void evaluated(const eval::Evaluation& evaluation) override {
    tell("evaluated", [&] {
      py::dict numbers;
      numbers["step"] = evaluation.step;
      numbers["loss"] = evaluation.held_out.loss;
      numbers["measures"] = evaluation.measures_text();
      return numbers;
    });
  }

  int stop_signal() {
    const py::gil_scoped_acquire gil;
    guarded([] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    });
    return raised_ ? SIGINT : 0;
  }
  void rethrow() {
    if (raised_) throw py::error_already_set(*raised_);
  }

 private:
  template <class Do>
  void guarded(Do act) {
    try {
      act();
    } catch (const py::error_already_set& error) {
      if (!raised_) raised_ = std::make_unique<py::error_already_set>(error);
    }
  }
  template <class Numbers>
  void tell(const char* what, Numbers numbers) {
    const py::gil_scoped_acquire gil;
    if (function_.is_none()) return;
    guarded([&] { function_(what, numbers()); });
  }
  void say(const char* what, const std::string& text) {
    tell(what, [&] {
      py::dict numbers;
      numbers["text"] = text;
      return numbers;
    });
  }

  py::object function_;
  std::unique_ptr<py::error_already_set> raised_;
};

template <class Run>
py::dict run_watched(py::object function, Run run) {
  Watcher watcher(std::move(function));
  train::RunResult result;
  {
    const py::gil_scoped_release others_go_on;
    const EngineAsBefore as_before;
    result = run(watcher);
  }
  watcher.rethrow();
  py::dict told;
  told["status"] = std::string(enum_text(result.status));
  return told;
}

}  // namespace siamese::python

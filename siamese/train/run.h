// A run in its directory: start or resume, train to the end, and leave nothing half-written.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "siamese/eval/evaluate.h"
#include "siamese/runs/run_info.h"
#include "siamese/train/config.h"
#include "siamese/train/metrics.h"

namespace siamese::train {

class Ranks;

// Who watches a run: the command line's progress, a test.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void started(const std::string& /*what*/) {}
  virtual void stepped(const StepMetrics&, int64_t /*steps*/) {}
  virtual void evaluated(const eval::Evaluation&) {}
  virtual void saved(const std::filesystem::path& /*checkpoint*/) {}
  // What does not end the run, but should be known at once: a checkpoint could not be written.
  virtual void warned(const std::string& /*message*/) {}
};

struct RunHooks {
  Observer* observer = nullptr;
  std::function<int()> stop_signal;  // asked after each step: a signal number, or 0 to go on
  // From when train.max_hours counts.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  Ranks* ranks = nullptr;  // several processes take the run's steps, and this one leads them (ranks.h)
  int64_t asked_by = 0;    // the process whose command run.json names; 0: this one
};

using runs::RunStatus;

struct RunResult {
  RunStatus status = RunStatus::finished;
  int signal = 0;  // when stopped; 0: by train.max_hours
};

// The config that a run keeps: a run named as its judge (eval.classifier) becomes that run's newest checkpoint, so that
// all its evaluations have one judge, also when the judge's own training goes on meanwhile.
RunConfig kept_config(RunConfig asked);

// A new run in `run_dir`. A directory that holds anything needs `overwrite`, and then must be an earlier run.
// Model and data are checked before the directory is touched. DivergedError leaves run.json saying so.
RunResult start_run(const RunConfig& config, const std::filesystem::path& run_dir, bool overwrite,
                    const std::string& label, const RunHooks& hooks);

// Goes on from the newest checkpoint (or the given one; or from the start when a run was killed before its first).
// The metrics after it are dropped: they will be computed again, to the same bits. A finished run is left as it is.
// DataError when config.yaml was edited in a key that may not be (config_keys.h), and when the data changed, unless
// `accept_changed_data`: then the observer hears of it, and trainer.json keeps it. `overrides` ("train.steps=2000") are
// edits of RUN/config.yaml, which is written once all else was accepted; UsageError for a key that may not be edited.
// What was edited, so or by hand, and may show in the results is kept in trainer.json.
RunResult resume_run(const std::filesystem::path& run_or_checkpoint, const RunHooks& hooks,
                     bool accept_changed_data = false, const std::vector<std::string>& overrides = {});

// What run.json says; `running` when there is none but a config.yaml, nullopt when there is no run.
std::optional<RunStatus> run_status(const std::filesystem::path& run_dir);

}  // namespace siamese::train

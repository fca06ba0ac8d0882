// A sweep that is run: every planned run is trained, continued or left as it stands, several at once if wanted, and
// noted in the record when it ended.
//   Sweep sweep(plan_sweep(...), {.out = "runs/demo"});
//   sweep.check();                   // nothing is written before it passed
//   sweep.train(hooks);
//
// One process writes: the one that has the Sweep. With `jobs` above 1 each run is trained by a process of its own,
// which the hooks name, and the Sweep notes what came of it. Another sweep may share folder and record: both take the
// same locks, and neither trains what the other has under way.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "siamese/base/check.h"
#include "siamese/train/run.h"
#include "siamese/train/sweep_estimate.h"
#include "siamese/train/sweep_plan.h"
#include "siamese/train/sweep_record.h"

namespace siamese::train {

struct SweepOptions {
  std::filesystem::path out;
  std::filesystem::path record;  // empty: none
  int64_t jobs = 1;
  bool fresh = false;  // what another build recorded or trained, or was trained on other data, counts as to do
  size_t first = 0;    // the run to begin with, the others follow in turn: for several processes on one sweep
};

// The command that trains one run of the plan in its folder below `out` and ends with the exit codes of the command
// line: 0 also for a run that diverged. Its first word is the program. What it prints is passed on line by line.
using WorkerCommand = std::function<std::vector<std::string>(const PlannedRun&)>;

struct SweepHooks {
  RunHooks run;                                 // stop_signal and begun count for the whole sweep
  std::function<void(const std::string&)> say;  // a line about what goes on
  std::function<void()> run_ended;              // one that was trained now ended: time to draw a report
  WorkerCommand worker;                         // needed when jobs > 1
  // A line that the process of a run printed.
  std::function<void(const PlannedRun&, const std::string&)> worker_said;
};

enum class Standing { recorded, ended_here, begun_here, to_do };

struct RunStanding {
  Standing standing = Standing::to_do;
  std::string text;  // "recorded: finished, loss 0.8712", "to do: begun here"
};

class Sweep {
 public:
  // UsageError when the record would be a file that the sweep itself writes; DataError when it cannot be read.
  Sweep(SweepPlan plan, SweepOptions options);

  // UsageError when `out` is not the folder of this sweep, or a run that stands there under the name of a planned one
  // was made with another config; DataError when the data of a run that is to do are not there.
  void check();
  void check_folder();  // the first half of that: enough where nothing is trained
  void check_data();    // the second

  // Of every planned run, in order. What --dry-run prints.
  std::vector<RunStanding> standings();

  // How long what is to do will take. `measure`: steps may be timed where no run that ended tells.
  SweepEstimate estimate(MeasureSteps measure);

  // Writes what a report needs to know of the plan and of the runs that are recorded, as `train` does before it trains.
  void write_known();

  // Trains what is to do; what is left as it stands is said in one line for all. `stopped` when a signal came or the
  // hours were over. A run that diverges is a result. One that fails does not keep the others from being trained; at
  // the end an Error with the exit code of the first names all.
  RunResult train(const SweepHooks& hooks);

  const SweepPlan& plan() const { return plan_; }

 private:
  friend class SweepWorkers;

  void check_files_are_ours() const;
  void open_data(const std::vector<RunStanding>& standing);
  std::optional<runs::RecordLine> find(const PlannedRun& run);
  bool is_another_run(const PlannedRun& run);
  // nullopt: to be trained. Otherwise why it is left as it is.
  std::optional<std::string> left_as_it_is(const PlannedRun& run);
  // Whether what stands in its folder counts. With `fresh` it does not where another build made it, or of other data.
  bool counts(const PlannedRun& run);
  // Whether a run ended in its folder, and counts.
  bool has_ended_here(const PlannedRun& run);
  void say_standing(const SweepHooks& hooks);
  void tidy_ended(const PlannedRun& run, const SweepHooks& hooks) const;
  RunResult train_in_turn(const SweepHooks& hooks);
  void note_end(const PlannedRun& run);
  std::string end_text(const PlannedRun& run) const;
  void write_recorded();
  void append_recorded(const PlannedRun& run, const runs::RecordLine& line) const;
  void note_failure(const PlannedRun& run, Exit code, const std::string& message, const SweepHooks& hooks);
  [[noreturn]] void throw_failures() const;

  struct Failure {
    std::string dir, message;
    Exit code = Exit::failure;
  };

  SweepPlan plan_;
  SweepOptions options_;
  std::optional<SweepRecord> record_;
  DataKeys data_;
  std::vector<Failure> failures_;
  std::set<std::string> said_;  // folders of the runs that had ended when training began: said in one line
};

// Trains one planned run in `dir`, or goes on with what stands there: what a worker does. A run that diverges is
// `diverged`, not an error. `fresh`: what another build made there, or was trained on other data, is replaced.
RunResult train_planned(const PlannedRun& run, const std::filesystem::path& dir, const RunHooks& hooks,
                        bool fresh = false);

}  // namespace siamese::train

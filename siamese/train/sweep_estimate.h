// How long a sweep will take, before it starts: the steps that are to do, times the time of a step. That is known from
// a run of the same model, batch and precision that ended on this kind of CPU with as many threads, in the record or in
// the folder of the sweep; where there is none, a few steps are made and timed, and thrown away. Evaluations and
// checkpoints come on top.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/train/sweep_plan.h"
#include "siamese/train/sweep_record.h"

namespace siamese::train {

struct SweepEstimate {
  size_t runs = 0;      // to do
  int64_t steps = 0;    // to do, of all of them
  double seconds = 0;   // of the steps whose time is known, `jobs` runs at a time
  int64_t unknown = 0;  // steps whose time is not
  size_t timed = 0;     // kinds of runs of which steps were timed now
  int64_t jobs = 1;

  std::string text() const;  // "6 runs to do, 3000 steps: about 12m, evaluations not counted"
};

// `never`: only what is known. `worthwhile`: kinds with at least 200 steps to do, of which timing costs little.
enum class MeasureSteps { never, worthwhile, always };

// A run that is to do, and the steps of it that were made already.
struct RunToDo {
  const PlannedRun* run = nullptr;
  int64_t steps_done = 0;
};

// What takes a step as long as another's: the texts of the keys that decide it.
std::string step_kind(const ConfigTexts& config);

SweepEstimate estimate_sweep(const std::vector<RunToDo>& runs, const std::vector<runs::RecordLine>& ended, int64_t jobs,
                             MeasureSteps measure);

}  // namespace siamese::train

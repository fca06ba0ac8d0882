// What became of each run beside the others of its sweep.
//
// Diverged: as run.json says, and by the rule of runs/outcome.h, which older versions did not have.
//
// Stuck: finished, but hardly better than predicting without looking. Every evaluation records a baseline, the loss of
// the best constant prediction on the same held-out targets (eval/baseline.h). With the best held-out loss that any run
// of the same family and baseline reached, a run has come
//   progress = (baseline - loss) / (baseline - best)
// of the way: 0 = as the baseline, 1 = as the best (where no run is below the baseline, all are at 0). It is stuck when
// that is below kStuckProgress, or when its loss is less than kStuckGain of the baseline below it, whatever the others
// did. This knows neither scheme nor first loss. A stuck run stays finished and in every mean: it is a result, marked
// as what it is.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/run_record.h"

namespace siamese::report {

inline constexpr double kStuckProgress = 0.1;
inline constexpr double kStuckGain = 0.02;

// Whose losses can be compared: a family and what its runs are judged on, known by the baseline. The same targets give
// the same baseline to the bit, on one machine; another may differ in the last digits.
struct HeldOutTask {
  std::string family;
  double baseline = 0;  // rounded; NaN: not known
  auto operator<=>(const HeldOutTask&) const = default;
};
HeldOutTask held_out_task(const RunRecord& run);

// All that runs of a family were judged on, as far as it is known; and whether a run was judged on one of them.
std::vector<HeldOutTask> tasks_of(const std::vector<RunRecord>& runs, const std::string& family);
bool is_judged_on(const RunRecord& run, const HeldOutTask& task);

// Fills in state, message, stuck and progress. Runs without a baseline (of older versions) are not judged stuck, and
// their progress stays missing.
std::vector<RunRecord> judge(std::vector<RunRecord> runs);

}  // namespace siamese::report

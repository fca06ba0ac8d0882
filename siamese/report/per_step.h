// What one step of a run stands for, so that curves can be drawn against more than steps.
#pragma once

#include "siamese/report/run_record.h"

namespace siamese::report {

struct PerStep {
  double samples = kMissing;
  double tokens = kMissing;   // of images, patches
  double flops = kMissing;    // forward and backward, as `siamese config check` counts them
  double seconds = kMissing;  // mean over the run: step times, without evaluations and checkpoints
};

PerStep per_step(const RunRecord& run);

// Each the median over the runs that have it.
PerStep median_per_step(const std::vector<PerStep>& runs);

}  // namespace siamese::report

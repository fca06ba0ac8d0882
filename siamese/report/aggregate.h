// Runs that differ only in their seed, as one result: a row of the table, a curve with its band.
// Which runs the means are over: the finished ones, also those that are stuck (judgement.h); while none has finished,
// those still on the way (`partial`). A diverged run has no final loss: it is counted, and a mean over fewer runs than
// there are says so.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "siamese/report/per_step.h"
#include "siamese/report/run_record.h"
#include "siamese/report/statistics.h"

namespace siamese::report {

struct ResultGroup {
  std::string family;
  std::string variant;
  double lr = kMissing;
  std::vector<size_t> runs;  // indices, in order of seed
  size_t finished = 0, diverged = 0;
  size_t stuck = 0;              // of the finished
  size_t judged = 0;             // of the finished: those with a baseline, which can be known to be stuck or not
  std::vector<size_t> averaged;  // of `runs`: those that the means are over
  size_t average_weights = 0;    // runs whose evaluations are of averaged weights
  bool partial = false;
  bool other_build = false;  // one of its runs is by another build than most (builds.h)
  bool outlier = false;      // the mean loss is far above those of its family (kOutlierFactor)

  MeanSpread val_loss, train_loss, accuracy;
  std::map<std::string, MeanSpread> measures;  // by name (measures.h); those that at least one of the runs has
  double tokens_per_s = kMissing;              // median over all runs of each run's median
  double samples_per_s = kMissing;
  PerStep per_step;
  std::vector<AccuracyGroup> accuracy_groups;  // last evaluations, answers pooled over the runs
};

// A mean loss above this is an outlier among those of its family: three times the largest baseline, or, where there is
// none, three times the median.
inline constexpr double kOutlierFactor = 3;

// Families in the order they first appear, variants of each likewise, learning rates ascending within each.
std::vector<ResultGroup> group_results(const std::vector<RunRecord>& runs);

// The groups family by family. Losses of two families are losses of two different things: they share no table.
std::vector<std::vector<ResultGroup>> split_by_family(const std::vector<ResultGroup>& groups);

}  // namespace siamese::report

// Runs that differ only in their seed, as one result: a row of the table, a curve with its band.
// Which runs the means are over: the finished ones; while none has finished, those still on the way (`partial`).
// A diverged run has no final loss: it is counted, never averaged. So is one that is stuck.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "siamese/report/run_record.h"
#include "siamese/report/statistics.h"

namespace siamese::report {

struct ResultGroup {
  std::string family;
  std::string variant;
  double lr = kMissing;
  std::vector<size_t> runs;  // indices, in order of seed
  size_t finished = 0, diverged = 0;
  size_t stuck = 0;     // of the diverged
  size_t averaged = 0;  // runs whose evaluations are of averaged weights
  bool partial = false;
  bool other_build = false;  // one of its runs is by another build than most (builds.h)

  MeanSpread val_loss, train_loss, accuracy;
  std::map<std::string, MeanSpread> measures;  // by name (measures.h); those that at least one of the runs has
  double tokens_per_s = kMissing;              // median over all runs of each run's median
  double samples_per_s = kMissing;
  std::vector<AccuracyGroup> accuracy_groups;  // last evaluations, answers pooled over the runs
};

// A finished run is stuck when its final loss (held-out, else training) is above half of its first loss, while the same
// variant of the same family at another learning rate (mean of the finished runs there) ends at or below that half: the
// rate broke it. Such a run becomes `diverged`, and its message says why. A variant that learns at no rate is not stuck
// but bad, and stays in the means.
std::vector<RunRecord> mark_stuck(std::vector<RunRecord> runs);

// Families in the order they first appear, variants of each likewise, learning rates ascending within each.
std::vector<ResultGroup> group_results(const std::vector<RunRecord>& runs);

// The groups family by family. Losses of two families are losses of two different things: they share no table.
std::vector<std::vector<ResultGroup>> split_by_family(const std::vector<ResultGroup>& groups);

}  // namespace siamese::report

// How often to save: a checkpoint stops the steps for a while, a failure throws away what was computed since the last.
// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps (2006), which for short
// writes is Young's sqrt(2 write mean) (1974).
#pragma once

#include "siamese/plan/machine.h"

namespace siamese::plan {

// Of computation between two saves, when a save takes `write` seconds and failures come `mean` seconds apart.
double best_interval_seconds(double write, double mean);

// The share of time that saving, computing again and starting again take, failures being rare beside `interval`:
//   write / interval + (interval / 2 + write + restart) / mean, at most 1.
double lost_share(double interval, double write, double mean, double restart);

struct Saving {
  double checkpoint_bytes = 0;
  double write_seconds = 0;
  double failure_seconds = 0;  // mean between two, of the whole machine
  double interval_seconds = 0;
  double lost_share = 0;
};
Saving saving(const Machine& machine, double checkpoint_bytes);

}  // namespace siamese::plan

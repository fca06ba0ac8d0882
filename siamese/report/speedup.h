// How much less training a setting needs for the loss of another, after the practice of public speedruns: there the
// target is a loss, and what counts is how soon it is reached.
//
// The curve of a setting is the mean of its runs' training losses, step by step, and of that the mean over the last
// 5 % of the steps (trailing). The level is the higher one of the two at which the curves end. Each reached it where
// its curve last came down through it (straight lines between points): not always its end, as a curve that wiggles may
// rise there, and then neither may gain by it.
//   speedup = tokens of the reference / tokens of the setting, to the same level (of images: samples)
// 1.25 = as good with a fifth less. Limits: a point on the way of a decaying learning rate is higher than the end of a
// shorter run would be, so that a setting which is ahead is credited with too little; training losses compare what was
// learned only while samples do not come twice.
#pragma once

#include <vector>

#include "siamese/report/aggregate.h"
#include "siamese/report/run_record.h"

namespace siamese::report {

struct LossCurve {
  std::vector<double> step;  // ascending
  std::vector<double> loss;  // smoothed
};

// Of the runs that the group's means are over; empty when they recorded no step.
LossCurve loss_curve(const std::vector<RunRecord>& runs, const ResultGroup& group);

// The step from which on the curve is at or below `level`; NaN when it ends above.
double steps_to(const LossCurve& curve, double level);

// Of `group` over `reference`, both of one family. Missing where a curve is.
double speedup(const std::vector<RunRecord>& runs, const ResultGroup& group, const ResultGroup& reference);

}  // namespace siamese::report

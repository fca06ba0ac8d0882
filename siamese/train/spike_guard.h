// The loss-spike guard (train.skip_outliers = z, train.skip_window = W): a step is an outlier when its loss or its
// gradient norm x lies far above those of the steps before it,
//   x - m > z s,   m = mean of the window,   s = max(standard deviation of the window, 1e-6 |m|)
// where the window holds x of the last W finite steps, this one not included, and at least max(8, W / 2) of them. The
// deviation is the root of the mean square about m. The floor of s is for losses that have stopped moving: without it
// a difference in the last bit would be an outlier.
//
// Skipped steps enter the window too, so that a change that lasts is not skipped for ever. Only what lies above counts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "siamese/base/enum_text.h"

namespace siamese::train {

// Why the update of a step was left out.
enum class SkipReason { non_finite, loss, grad_norm };

// Part of the state of a run: a resumed one judges as if it had never stopped.
struct SpikeWindow {
  std::vector<double> loss, grad_norm;  // of the last finite steps, the oldest first
};

struct Outlier {
  SkipReason reason = SkipReason::loss;
  double z = 0;  // (x - m) / s
};

// Judges a finite step against the window, then takes it in. The loss is looked at first.
std::optional<Outlier> judge_step(SpikeWindow& window, double loss, double grad_norm, double z, int64_t size);

}  // namespace siamese::train

template <>
struct siamese::EnumText<siamese::train::SkipReason> {
  static constexpr EnumNames<train::SkipReason, 3> names{{{train::SkipReason::non_finite, "non_finite"},
                                                          {train::SkipReason::loss, "loss"},
                                                          {train::SkipReason::grad_norm, "grad_norm"}}};
};

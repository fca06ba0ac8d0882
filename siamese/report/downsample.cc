#include "siamese/report/downsample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "siamese/base/check.h"

namespace siamese::report {

StepGrid::StepGrid(int64_t last_step) : last_step_(std::max<int64_t>(last_step, 0)) {
  if (last_step_ > kExactSteps) width_ = (last_step_ - kFineSteps + kCoarseBuckets - 1) / kCoarseBuckets;
  size_ = last_step_ == 0 ? 0 : bucket(last_step_) + 1;
}

int64_t StepGrid::bucket(int64_t step) const {
  const int64_t index = std::clamp<int64_t>(step, 1, std::max<int64_t>(last_step_, 1)) - 1;
  if (exact() || index < kFineSteps) return index;
  return kFineSteps + (index - kFineSteps) / width_;
}

int64_t StepGrid::first_step(int64_t bucket) const {
  if (exact() || bucket < kFineSteps) return bucket + 1;
  return kFineSteps + (bucket - kFineSteps) * width_ + 1;
}

int64_t StepGrid::last_step(int64_t bucket) const {
  return std::min(last_step_, bucket + 1 < size_ ? first_step(bucket + 1) - 1 : last_step_);
}

BucketedCurve bucket_curve(const StepGrid& grid, const std::vector<int64_t>& steps, const std::vector<double>& values) {
  SIAMESE_INVARIANT(steps.size() == values.size());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  BucketedCurve curve;
  if (steps.empty()) return curve;
  const size_t size = static_cast<size_t>(grid.bucket(steps.back()) + 1);
  curve.mean.assign(size, 0);
  curve.low.assign(size, kNone);
  curve.high.assign(size, kNone);
  std::vector<int64_t> counts(size, 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const size_t at = static_cast<size_t>(grid.bucket(steps[i]));
    SIAMESE_INVARIANT(at < size);
    curve.mean[at] += values[i];
    curve.low[at] = counts[at] == 0 ? values[i] : std::min(curve.low[at], values[i]);
    curve.high[at] = counts[at] == 0 ? values[i] : std::max(curve.high[at], values[i]);
    ++counts[at];
  }
  for (size_t at = 0; at < size; ++at) {
    curve.mean[at] = counts[at] > 0 ? curve.mean[at] / static_cast<double>(counts[at]) : kNone;
  }
  return curve;
}

std::vector<double> spread_over_grid(const StepGrid& grid, const std::vector<int64_t>& last_steps,
                                     const std::vector<double>& means) {
  SIAMESE_INVARIANT(last_steps.size() == means.size());
  std::vector<double> values;
  if (last_steps.empty()) return values;
  const auto middle = [&](size_t at) {
    const int64_t first = at > 0 ? last_steps[at - 1] + 1 : 1;
    return static_cast<double>(first + last_steps[at]) / 2;
  };
  size_t at = 0;
  for (int64_t bucket = 0; bucket <= grid.bucket(last_steps.back()); ++bucket) {
    const double x = static_cast<double>(grid.first_step(bucket) + grid.last_step(bucket)) / 2;
    while (at + 1 < last_steps.size() && static_cast<double>(last_steps[at]) < x) ++at;
    const size_t left = x < middle(at) && at > 0 ? at - 1 : at;
    const size_t right = std::min(left + 1, means.size() - 1);
    const bool between = x > middle(left) && x < middle(right) && std::isfinite(means[left] + means[right]);
    const double share = between ? (x - middle(left)) / (middle(right) - middle(left)) : 0;
    values.push_back(between ? means[left] + share * (means[right] - means[left]) : means[at]);
  }
  return values;
}

}  // namespace siamese::report

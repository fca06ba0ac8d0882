#include "siamese/report/live_curve.h"

#include <algorithm>
#include <cmath>

namespace siamese::report {

void BucketOfSteps::add(double value) {
  if (!std::isfinite(value)) return;
  sum += value;
  low = std::min(low, value);
  high = std::max(high, value);
  ++count;
}

void BucketOfSteps::join(const BucketOfSteps& other) {
  sum += other.sum;
  low = std::min(low, other.low);
  high = std::max(high, other.high);
  count += other.count;
}

double BucketOfSteps::mean() const {
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

void LiveCurve::double_width() {
  for (size_t at = 0; at < buckets_.size(); ++at) {
    if (at % 2 == 0) {
      buckets_[at / 2] = buckets_[at];
    } else {
      for (size_t quantity = 0; quantity < quantities; ++quantity) {
        buckets_[at / 2][quantity].join(buckets_[at][quantity]);
      }
    }
  }
  buckets_.resize((buckets_.size() + 1) / 2);
  width_ *= 2;
  ++epoch_;
}

void LiveCurve::add(int64_t step, double loss_value, double grad_norm_value) {
  if (step <= last_step_) {
    buckets_.resize(std::min(buckets_.size(), place(step)));
    ++epoch_;
  }
  last_step_ = step;
  while (place(step) >= kMostBuckets) double_width();
  if (place(step) >= buckets_.size()) buckets_.resize(place(step) + 1);
  buckets_.back()[loss].add(loss_value);
  buckets_.back()[grad_norm].add(grad_norm_value);
}

void LiveCurve::clear() {
  buckets_.clear();
  width_ = 1;
  last_step_ = 0;
  ++epoch_;
}

}  // namespace siamese::report

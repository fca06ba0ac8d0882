#include "siamese/report/speedup.h"

#include <algorithm>
#include <cmath>

#include "siamese/report/downsample.h"
#include "siamese/report/measures.h"

namespace siamese::report {

namespace {

constexpr double kWindow = 0.05;

std::vector<double> on_grid(const StepGrid& grid, const RunRecord& run) {
  if (run.recorded) return spread_over_grid(grid, run.metrics.step, run.metrics.loss);
  return bucket_curve(grid, run.metrics.step, run.metrics.loss).mean;
}

}  // namespace

LossCurve loss_curve(const std::vector<RunRecord>& runs, const ResultGroup& group) {
  int64_t last_step = 0;
  for (const size_t index : group.averaged) {
    const auto& steps = runs[index].metrics.step;
    if (!steps.empty()) last_step = std::max(last_step, steps.back());
  }
  LossCurve curve;
  if (last_step == 0) return curve;
  const StepGrid grid(last_step);
  const auto buckets = static_cast<size_t>(grid.size());
  std::vector<double> sum(buckets, 0), count(buckets, 0);
  for (const size_t index : group.averaged) {
    const std::vector<double> values = on_grid(grid, runs[index]);
    for (size_t at = 0; at < values.size(); ++at) {
      if (!std::isfinite(values[at])) continue;
      sum[at] += values[at];
      count[at] += 1;
    }
  }
  // The trailing mean, each bucket by its steps.
  const double window = std::max(1.0, kWindow * static_cast<double>(last_step));
  const auto last = [&](size_t at) { return static_cast<double>(grid.last_step(static_cast<int64_t>(at))); };
  for (size_t at = 0; at < buckets; ++at) {
    if (count[at] == 0) continue;
    double total = 0, steps = 0;
    for (size_t back = at + 1; back-- > 0 && last(back) > last(at) - window;) {
      if (count[back] == 0) continue;
      const double width = last(back) - static_cast<double>(grid.first_step(static_cast<int64_t>(back))) + 1;
      total += width * sum[back] / count[back];
      steps += width;
    }
    curve.step.push_back(last(at));
    curve.loss.push_back(total / steps);
  }
  return curve;
}

double steps_to(const LossCurve& curve, double level) {
  if (curve.step.empty() || !(curve.loss.back() <= level)) return kMissing;
  size_t at = curve.step.size() - 1;
  while (at > 0 && curve.loss[at - 1] <= level) --at;
  if (at == 0) return curve.step.front();
  const double above = curve.loss[at - 1] - level;
  const double share = above / (curve.loss[at - 1] - curve.loss[at]);
  return curve.step[at - 1] + share * (curve.step[at] - curve.step[at - 1]);
}

double speedup(const std::vector<RunRecord>& runs, const ResultGroup& group, const ResultGroup& reference) {
  const LossCurve own = loss_curve(runs, group);
  const LossCurve other = loss_curve(runs, reference);
  if (own.step.empty() || other.step.empty()) return kMissing;
  const double level = std::max(own.loss.back(), other.loss.back());
  const bool images = sees_images(group.family);
  const auto size = [&](const ResultGroup& of) { return images ? of.per_step.samples : of.per_step.tokens; };
  // Where the configs do not say how large a step is, all are taken to be alike.
  const double sizes = size(reference) / size(group);
  return steps_to(other, level) / steps_to(own, level) * (std::isfinite(sizes) ? sizes : 1);
}

}  // namespace siamese::report

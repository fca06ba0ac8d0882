#include "siamese/report/live_alerts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "siamese/report/step_reader.h"

namespace siamese::report {

namespace {

constexpr double kForget = 0.02;  // of the running mean, a step
constexpr int64_t kEpisode = 20;  // steps: spikes closer than this are one
constexpr size_t kMostSites = size_t{1} << 16;

std::string times_text(int64_t count) { return count > 1 ? fmt::format("; {} so far", count) : ""; }

}  // namespace

void LiveAlerts::judge_loss(const runs::StepRecord& record) {
  const double loss = record.loss;
  if (!std::isfinite(loss)) return;
  if (judged_++ == 0) {
    mean_ = loss;
    return;
  }
  const double limit = std::max(kSpikeFactor * deviation_, kSpikeShare * std::fabs(mean_));
  const bool high = judged_ > kSpikeWarmUp && loss - mean_ > limit;
  if (high) {
    if (spikes_ == 0 || record.step - last_high_ > kEpisode) {
      ++spikes_;
      spike_step_ = record.step;
      spike_loss_ = loss;
      spike_before_ = mean_;
    } else if (loss > spike_loss_) {
      spike_step_ = record.step;
      spike_loss_ = loss;
    }
    last_high_ = record.step;
  }
  // A spike counts as the limit: it does not hide the next one, and a lasting rise is what is usual after a while.
  const double counted = high ? mean_ + limit : loss;
  const double share = std::max(kForget, 1.0 / static_cast<double>(judged_));
  deviation_ += share * (std::fabs(counted - mean_) - deviation_);
  mean_ += share * (counted - mean_);
}

void LiveAlerts::judge_streams(const runs::StepRecord& record) {
  if (record.sites.empty()) return;
  collapsed_.clear();
  for (const runs::SiteRecord& site : record.sites) {
    for (const runs::StreamRecord& stream : site.streams) {
      if (!std::isfinite(stream.before)) continue;
      const std::pair<std::string, int64_t> key(stream.name, site.site);
      if (highest_.size() >= kMostSites && !highest_.contains(key)) continue;
      Highest& highest = highest_[key];
      if (stream.before >= highest.rms) highest = {stream.before, record.step};
      if (stream.before >= kCollapse * highest.rms) continue;
      collapsed_.try_emplace(
          stream.name, Alert{"collapse", record.step,
                             fmt::format("stream {} at site {}: RMS {:.3g} at step {}, {:.3g} at step {}", stream.name,
                                         site.site, stream.before, record.step, highest.rms, highest.step)});
    }
  }
}

void LiveAlerts::take(const runs::StepRecord& record) {
  judge_loss(record);
  judge_streams(record);
  if (!record.skipped) return;
  ++skipped_;
  skipped_step_ = record.step;
  skip_reason_ = record.skip_reason.empty() ? "non_finite" : record.skip_reason;
}

namespace {

// Mean loss of the buckets [from, to).
double mean_of_buckets(const LiveCurve& curve, size_t from, size_t to) {
  BucketOfSteps all;
  for (size_t at = from; at < to; ++at) all.join(curve.buckets()[at][LiveCurve::loss]);
  return all.mean();
}

}  // namespace

std::vector<Alert> LiveAlerts::alerts(const LiveCurve& curve, bool running) const {
  std::vector<Alert> found;
  if (spikes_ > 0) {
    found.push_back({"spike", spike_step_,
                     fmt::format("loss {:.4g} at step {}, {:.4g} before it{}", spike_loss_, spike_step_, spike_before_,
                                 times_text(spikes_))});
  }
  if (skipped_ > 0) {
    found.push_back({"skipped", skipped_step_,
                     fmt::format("step {} changed nothing ({}){}", skipped_step_, skip_reason_, times_text(skipped_))});
  }
  const int64_t window = std::max(kPlateauSteps, curve.last_step() / 5);
  const auto buckets = static_cast<size_t>(window / curve.width());
  if (running && curve.last_step() >= window + kPlateauWarmUp && buckets >= 4 && buckets <= curve.buckets().size()) {
    const size_t end = curve.buckets().size(), half = buckets / 2;
    const double older = mean_of_buckets(curve, end - 2 * half, end - half);
    const double newer = mean_of_buckets(curve, end - half, end);
    if (newer > older - kPlateauFall * std::fabs(older)) {
      found.push_back({"plateau", curve.last_step(),
                       fmt::format("loss {:.4g} over the last {} steps, {:.4g} over those before them", newer,
                                   static_cast<int64_t>(half) * curve.width(), older)});
    }
  }
  for (const auto& [name, alert] : collapsed_) found.push_back(alert);
  return found;
}

}  // namespace siamese::report

#include "siamese/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "siamese/eval/site_gradients.h"
#include "siamese/ops/reduce.h"

namespace siamese::train {

runs::StepRecord record_of(const StepMetrics& metrics) {
  const bool outlier = metrics.skipped && metrics.skip_reason != SkipReason::non_finite;
  runs::StepRecord record{.step = metrics.step,
                          .tokens = metrics.tokens,
                          .loss = metrics.loss,
                          .grad_norm = metrics.grad_norm,
                          .lr = metrics.lr,
                          .tokens_per_s = metrics.tokens_per_s,
                          .samples_per_s = metrics.samples_per_s,
                          .step_ms = metrics.step_ms,
                          .skipped = metrics.skipped,
                          .skip_reason = metrics.skipped ? std::string(enum_text(metrics.skip_reason)) : "",
                          .skip_z = outlier ? metrics.skip_z : runs::kNone,
                          .extra = metrics.extra,
                          .experts = {},
                          .sites = {}};
  for (size_t block = 0; block < metrics.expert_load.size(); ++block) {
    record.experts.push_back({static_cast<int64_t>(block), metrics.expert_load[block]});
  }
  for (const SiteMetrics& site : metrics.sites) {
    runs::SiteRecord& of = record.sites.emplace_back();
    of = {site.site.index,
          site.site.block,
          std::string(enum_text(site.site.kind)),
          site.grad_norm,
          site.branch_in,
          site.branch_out,
          {}};
    for (const auto& stream : site.streams) of.streams.push_back({stream.name, stream.before, stream.after});
  }
  return record;
}

std::string to_json(const StepMetrics& metrics) { return runs::to_line(record_of(metrics)); }

ExpertLoad expert_load(const std::vector<double>& counts, int64_t experts) {
  ExpertLoad load;
  for (auto row = counts.begin(); row != counts.end(); row += experts) {
    std::vector<double>& shares = load.shares.emplace_back(row, row + experts);
    const double rows = std::max(1.0, std::accumulate(shares.begin(), shares.end(), 0.0));
    for (double& share : shares) share /= rows;
    load.largest =
        std::max(load.largest, *std::max_element(shares.begin(), shares.end()) * static_cast<double>(experts));
  }
  return load;
}

SiteMetrics& SiteRecorder::at_site(const residual::Site& site) {
  const auto index = static_cast<size_t>(site.index);
  if (sites_.size() <= index) sites_.resize(index + 1);
  sites_[index].site = site;
  return sites_[index];
}

void SiteRecorder::stream(const residual::Site& site, const std::string& name, const at::Tensor& before,
                          const at::Tensor& after) {
  std::vector<SiteMetrics::Stream>& streams = at_site(site).streams;
  const size_t here = streams.size();
  streams.push_back({name, 0, std::numeric_limits<double>::quiet_NaN()});
  measure(site, before, [here](SiteMetrics& of) -> double& { return of.streams[here].before; });
  if (after.defined()) measure(site, after, [here](SiteMetrics& of) -> double& { return of.streams[here].after; });
}

void SiteRecorder::branch(const residual::Site& site, const at::Tensor& input, const at::Tensor& output) {
  measure(site, input, [](SiteMetrics& of) -> double& { return of.branch_in; });
  measure(site, output, [](SiteMetrics& of) -> double& { return of.branch_out; });
}

void SiteRecorder::measure(const residual::Site& site, const at::Tensor& value,
                           std::function<double&(SiteMetrics&)> place) {
  at_site(site);
  sums_.push_back({ops::sum_squares_of({value}), static_cast<double>(value.numel()), std::move(place),
                   static_cast<size_t>(site.index)});
}

std::vector<SiteMetrics> SiteRecorder::finish(const nn::Parameters& parameters) {
  for (size_t site = 0; site < sites_.size(); ++site) {
    const std::vector<at::Tensor> gradients = eval::site_gradients(parameters, sites_[site].site);
    if (gradients.empty()) continue;
    sums_.push_back({ops::sum_squares_of(gradients), 1, [](SiteMetrics& of) -> double& { return of.grad_norm; }, site});
  }
  std::vector<at::Tensor> squares;
  for (const Sum& sum : sums_) squares.push_back(sum.squares);
  const std::vector<double> numbers = ops::read_numbers(squares);
  for (size_t i = 0; i < numbers.size(); ++i) {
    sums_[i].place(sites_[sums_[i].site]) = std::sqrt(numbers[i] / std::max(1.0, sums_[i].count));
  }
  sums_.clear();
  return std::move(sites_);
}

}  // namespace siamese::train

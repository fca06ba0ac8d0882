#include "siamese/train/metrics.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include <ATen/ATen.h>

#include "siamese/io/strict_json.h"
#include "siamese/ops/reduce.h"

namespace siamese::train {

namespace {

std::vector<double> short_shares(std::vector<double> shares) {
  for (double& share : shares) share = std::round(share * 1e5) / 1e5;
  return shares;
}

}  // namespace

std::string to_json(const StepMetrics& metrics) {
  nlohmann::ordered_json line = {{"schema", 1},
                                 {"step", metrics.step},
                                 {"tokens", metrics.tokens},
                                 {"loss", metrics.loss},
                                 {"grad_norm", metrics.grad_norm},
                                 {"lr", metrics.lr},
                                 {"tokens_per_s", std::round(metrics.tokens_per_s)},
                                 {"samples_per_s", std::round(metrics.samples_per_s * 100) / 100},
                                 {"step_ms", std::round(metrics.step_ms * 100) / 100},
                                 {"skipped", metrics.skipped}};
  if (metrics.skipped) line["skip_reason"] = std::string(enum_text(metrics.skip_reason));
  if (metrics.skipped && metrics.skip_reason != SkipReason::non_finite) line["skip_z"] = metrics.skip_z;
  for (const auto& [name, value] : metrics.extra) line[name] = value;
  for (size_t block = 0; block < metrics.expert_load.size(); ++block) {
    line["experts"].push_back({{"block", block}, {"load", short_shares(metrics.expert_load[block])}});
  }
  if (!metrics.sites.empty()) {
    auto sites = nlohmann::ordered_json::array();
    for (const auto& site : metrics.sites) {
      auto streams = nlohmann::ordered_json::array();
      for (const auto& stream : site.streams) {
        streams.push_back({{"name", stream.name}, {"before", stream.before}, {"after", stream.after}});
      }
      sites.push_back({{"site", site.site.index},
                       {"block", site.site.block},
                       {"kind", std::string(enum_text(site.site.kind))},
                       {"grad_norm", site.grad_norm},
                       {"branch_in", site.branch_in},
                       {"branch_out", site.branch_out},
                       {"streams", streams}});
    }
    line["sites"] = sites;
  }
  return io::json_text(line);
}

ExpertLoad expert_load(const at::Tensor& counts) {
  const at::Tensor shares = counts.to(at::kDouble) / counts.sum(-1, true).clamp_min(1);
  ExpertLoad load{{}, shares.max().item<double>() * static_cast<double>(counts.size(1))};
  for (int64_t block = 0; block < counts.size(0); ++block) {
    const double* const row = shares.const_data_ptr<double>() + block * counts.size(1);
    load.shares.emplace_back(row, row + counts.size(1));
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
  const double after_rms = after.defined() ? ops::rms(after) : std::numeric_limits<double>::quiet_NaN();
  at_site(site).streams.push_back({name, ops::rms(before), after_rms});
}

void SiteRecorder::branch(const residual::Site& site, const at::Tensor& input, const at::Tensor& output) {
  SiteMetrics& metrics = at_site(site);
  metrics.branch_in = ops::rms(input);
  metrics.branch_out = ops::rms(output);
}

std::vector<SiteMetrics> SiteRecorder::finish(const nn::Parameters& parameters) {
  for (auto& metrics : sites_) {
    const std::string prefix =
        "blocks." + std::to_string(metrics.site.block) + "." + std::string(enum_text(metrics.site.kind));
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : parameters.list()) {
      if (parameter.name.starts_with(prefix)) gradients.push_back(parameter.value.grad());
    }
    metrics.grad_norm = std::sqrt(ops::sum_squares(gradients));
  }
  return std::move(sites_);
}

}  // namespace siamese::train

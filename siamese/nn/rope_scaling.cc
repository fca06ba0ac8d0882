#include "siamese/nn/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace siamese::nn {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double llama3(double frequency, const RopeScaling& scaling) {
  const double turns = static_cast<double>(scaling.context) * frequency / kTurn;
  const double kept = std::clamp((turns - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0);
  return frequency * (kept + (1 - kept) / scaling.factor);
}

// Where along the frequencies yarn's ramp begins and ends.
struct Ramp {
  double low = 0;
  double high = 0;

  double at(int64_t j) const { return std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0); }
};

Ramp yarn_ramp(int64_t head_dim, double theta, const RopeScaling& scaling) {
  const auto width = static_cast<double>(head_dim);
  const auto at = [&](double rotations) {
    return width * std::log(static_cast<double>(scaling.context) / (kTurn * rotations)) / (2 * std::log(theta));
  };
  Ramp ramp{at(scaling.beta_fast), at(scaling.beta_slow)};
  if (scaling.truncate) ramp = {std::floor(ramp.low), std::ceil(ramp.high)};
  ramp = {std::max(ramp.low, 0.0), std::min(ramp.high, width - 1)};
  if (ramp.low == ramp.high) ramp.high += 0.001;
  return ramp;
}

}  // namespace

std::vector<double> rotary_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling) {
  std::vector<double> all;
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    all.push_back(std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim)));
  }
  if (scaling.kind == RopeScalingKind::llama3) {
    for (double& frequency : all) frequency = llama3(frequency, scaling);
  }
  if (scaling.kind == RopeScalingKind::yarn) {
    const Ramp ramp = yarn_ramp(head_dim, theta, scaling);
    for (int64_t j = 0; j < head_dim / 2; ++j) {
      double& frequency = all[static_cast<size_t>(j)];
      frequency = frequency * (1 - ramp.at(j)) + frequency / scaling.factor * ramp.at(j);
    }
  }
  return all;
}

double rotary_magnitude(const RopeScaling& scaling) {
  if (scaling.kind != RopeScalingKind::yarn) return 1;
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  return scaling.factor <= 1 ? 1 : 0.1 * std::log(scaling.factor) + 1;
}

}  // namespace siamese::nn

#include "siamese/train/spike_guard.h"

#include <algorithm>
#include <cmath>

namespace siamese::train {
namespace {

constexpr int64_t kFewest = 8;
constexpr double kSmallestShare = 1e-6;

// How many deviations `x` lies above `values`; 0 when they are all zero, and nothing can be said.
double deviations_above(const std::vector<double>& values, double x) {
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::max(std::sqrt(squares / count), kSmallestShare * std::abs(mean));
  return deviation > 0 ? (x - mean) / deviation : 0;
}

void take_in(std::vector<double>& values, double x, int64_t size) {
  values.push_back(x);
  const auto most = static_cast<size_t>(size);
  if (values.size() > most) values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(most));
}

}  // namespace

std::optional<Outlier> judge_step(SpikeWindow& window, double loss, double grad_norm, double z, int64_t size) {
  std::optional<Outlier> outlier;
  if (static_cast<int64_t>(window.loss.size()) >= std::max(kFewest, (size + 1) / 2)) {
    const double of_loss = deviations_above(window.loss, loss);
    const double of_norm = deviations_above(window.grad_norm, grad_norm);
    if (of_loss > z) {
      outlier = Outlier{SkipReason::loss, of_loss};
    } else if (of_norm > z) {
      outlier = Outlier{SkipReason::grad_norm, of_norm};
    }
  }
  take_in(window.loss, loss, size);
  take_in(window.grad_norm, grad_norm, size);
  return outlier;
}

}  // namespace siamese::train

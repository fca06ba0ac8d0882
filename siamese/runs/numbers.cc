#include "siamese/runs/numbers.h"

#include <algorithm>
#include <cmath>

namespace siamese::runs {

double number_of(const NamedNumbers& numbers, const std::string& name) {
  for (const auto& [known, value] : numbers) {
    if (known == name) return value;
  }
  return kNone;
}

double finite_mean(const std::vector<double>& values, size_t from, size_t to) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = from; i < to; ++i) {
    if (!std::isfinite(values[i])) continue;
    sum += values[i];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kNone;
}

double mean_of_last(const std::vector<double>& values) {
  return finite_mean(values, values.size() - std::min(values.size(), kLossWindow), values.size());
}

double median_after_first(const std::vector<double>& values) {
  std::vector<double> finite;
  for (size_t i = values.size() > 1 ? 1 : 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) finite.push_back(values[i]);
  }
  if (finite.empty()) return kNone;
  std::sort(finite.begin(), finite.end());
  const size_t half = finite.size() / 2;
  return finite.size() % 2 == 1 ? finite[half] : finite[half - 1] + (finite[half] - finite[half - 1]) / 2;
}

double seconds_of(const std::vector<double>& step_ms) {
  if (step_ms.empty()) return kNone;
  double sum = 0;
  for (const double ms : step_ms) sum += std::isfinite(ms) ? ms / 1000 : 0;
  return sum;
}

}  // namespace siamese::runs

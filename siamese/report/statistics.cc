#include "siamese/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace siamese::report {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

MeanSpread mean_spread(const std::vector<double>& values) {
  double sum = 0;
  double low = HUGE_VAL, high = -HUGE_VAL;
  size_t count = 0;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
    ++count;
  }
  if (count == 0) return {kNone, kNone, 0, kNone, kNone};
  const double mean = sum / static_cast<double>(count);
  if (count == 1) return {mean, kNone, 1, low, high};
  double squares = 0;
  for (double value : values) {
    if (std::isfinite(value)) squares += (value - mean) * (value - mean);
  }
  return {mean, std::sqrt(squares / static_cast<double>(count - 1)), count, low, high};
}

double median(std::vector<double> values) {
  if (values.empty()) return kNone;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half), values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  const double lower = *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half));
  return lower + (upper - lower) / 2;
}

double round_significant(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = digits - 1 - static_cast<int>(std::floor(std::log10(std::fabs(value))));
  if (exponent > 300 || exponent < -300) return value;
  // Dividing by a power of ten that is exact keeps 0.123 from becoming 0.12300000000000001.
  if (exponent < 0) {
    const double unit = std::pow(10.0, -exponent);
    return std::round(value / unit) * unit;
  }
  const double unit = std::pow(10.0, exponent);
  return std::round(value * unit) / unit;
}

}  // namespace siamese::report

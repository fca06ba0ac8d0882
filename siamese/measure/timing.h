// Times of repeated work and what is said of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace siamese::measure {

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The value below which the share `share` of the values lies, between neighbours by proportion; NaN without values.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

// Where the true median lies with a chance of at least 95 %, whatever the distribution: between two of the sorted
// values (the number of values below the median is binomial). With fewer than six values that chance is not reached,
// and it is the least and the greatest of them.
struct MedianInterval {
  double low = std::nan("");
  double high = std::nan("");
};

inline MedianInterval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  size_t cut = 0;     // so many from either end; a side may miss the median with a chance of 2.5 %
  if (count > 200) {  // the binomial is normal, and its terms would underflow
    cut = static_cast<size_t>((static_cast<double>(count) - 1.96 * std::sqrt(static_cast<double>(count))) / 2);
  } else {
    double term = std::pow(0.5, static_cast<double>(count));  // the chance that exactly `cut` values lie below
    for (double fewer = term; fewer <= 0.025; fewer += term) {
      ++cut;
      term *= static_cast<double>(count - cut + 1) / static_cast<double>(cut);
    }
  }
  const size_t from = cut == 0 ? 0 : cut - 1;
  return {values[from], values[count - 1 - from]};
}

}  // namespace siamese::measure

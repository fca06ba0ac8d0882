// The few numbers that a run's columns come down to, computed here for the record of a sweep and for the report.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace siamese::runs {

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // not measured, or not finite
inline constexpr size_t kLossWindow = 50;

// By name, in the order written.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

// NaN when `numbers` has no such name.
double number_of(const NamedNumbers& numbers, const std::string& name);

// Of the finite values in [from, to); NaN without any.
double finite_mean(const std::vector<double>& values, size_t from, size_t to);
// Of the finite values among the last kLossWindow.
double mean_of_last(const std::vector<double>& values);
// Of the finite values, without the first step, which pays for warm-up (unless it is the only one).
double median_after_first(const std::vector<double>& values);
// Of step times in milliseconds, the non-finite ones left out; NaN without any step.
double seconds_of(const std::vector<double>& step_ms);

}  // namespace siamese::runs

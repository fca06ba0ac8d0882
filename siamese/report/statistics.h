// Mean and spread of a handful of seeds. NaN values are left out and `count` says how many remained.
#pragma once

#include <cstddef>
#include <vector>

namespace siamese::report {

// spread = sample standard deviation (n - 1); NaN below two values, the others NaN without any.
struct MeanSpread {
  double mean;
  double spread;
  size_t count;
  double low, high;  // smallest and largest
};

MeanSpread mean_spread(const std::vector<double>& values);

// NaN when empty; values must be finite.
double median(std::vector<double> values);

// Rounded to that many significant digits, so that printing it takes few characters; non-finite values stay.
double round_significant(double value, int digits);

}  // namespace siamese::report

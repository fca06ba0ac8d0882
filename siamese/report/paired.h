// Is one setting better than another, or is it the seeds? Both were run with the same seeds, so their losses are
// compared seed by seed: d_i = a_i - b_i. Under Student's assumptions (differences independent, roughly normal)
//   interval: mean(d) +- t(0.05, n - 1) s / sqrt(n)      p: P(|T| > |mean(d)| sqrt(n) / s), n - 1 degrees of freedom
// Of many pairs some differ by chance. Holm (1979) keeps the chance of even one false difference below 5 %: of m values
// of p, ascending, the i-th (from 0) is multiplied by m - i, and none is below the one before.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace siamese::report {

inline constexpr double kNoiseLevel = 0.05;

struct PairedDifference {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  size_t n = 0;                      // seeds that both finished
  double mean = kNone;               // of first - second: below 0 the first is better
  double low = kNone, high = kNone;  // 95 % interval of this pair alone; NaN below two seeds
  double p = kNone;                  // the same
  double holm = kNone;               // p corrected for all pairs that were looked at

  // "lower", "higher" (the first than the second), "within noise", or "one seed" / "no common seed" where nothing can
  // be said.
  std::string verdict() const;
};

// NaN differences are left out.
PairedDifference paired_difference(const std::vector<double>& differences);

// Fills in `holm` of all that have a p.
void correct_by_holm(const std::vector<PairedDifference*>& pairs);

}  // namespace siamese::report

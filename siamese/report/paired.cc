#include "siamese/report/paired.h"

#include <algorithm>
#include <cmath>

#include "siamese/report/statistics.h"
#include "siamese/report/student.h"

namespace siamese::report {

std::string PairedDifference::verdict() const {
  if (n == 0) return "no common seed";
  if (n == 1) return "one seed";
  if (!(holm < kNoiseLevel)) return "within noise";
  return mean < 0 ? "lower" : "higher";
}

PairedDifference paired_difference(const std::vector<double>& differences) {
  const MeanSpread spread = mean_spread(differences);
  PairedDifference result;
  result.n = spread.count;
  result.mean = spread.mean;
  if (spread.count < 2) return result;
  const double error = spread.spread / std::sqrt(static_cast<double>(spread.count));
  const auto freedom = static_cast<double>(spread.count - 1);
  const double half = student_quantile(kNoiseLevel, freedom) * error;
  result.low = spread.mean - half;
  result.high = spread.mean + half;
  // Without any spread there is nothing to measure the mean by: the same everywhere is no noise, none at all no
  // difference.
  if (error > 0)
    result.p = student_two_sided(spread.mean / error, freedom);
  else
    result.p = spread.mean == 0 ? 1 : 0;
  result.holm = result.p;
  return result;
}

void correct_by_holm(const std::vector<PairedDifference*>& pairs) {
  std::vector<PairedDifference*> tested;
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(tested),
               [](const PairedDifference* pair) { return std::isfinite(pair->p); });
  std::stable_sort(tested.begin(), tested.end(),
                   [](const PairedDifference* a, const PairedDifference* b) { return a->p < b->p; });
  double least = 0;
  for (size_t i = 0; i < tested.size(); ++i) {
    least = std::max(least, std::min(1.0, static_cast<double>(tested.size() - i) * tested[i]->p));
    tested[i]->holm = least;
  }
}

}  // namespace siamese::report

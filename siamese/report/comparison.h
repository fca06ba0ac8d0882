// The variants of one family against each other, each at the learning rate that suits it best: at one rate for all, the
// rate decides who wins.
//
// The best rate of a variant is the one with the lowest mean held-out loss, among the rates at which no run diverged
// where there are any. It is chosen by the same losses that are then compared: with many rates the best is a little too
// good, for a variant with more rates more so.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "siamese/report/aggregate.h"
#include "siamese/report/paired.h"

namespace siamese::report {

// Where among the rates that were tried the best one lies: at an end, a better one may lie beyond.
enum class RatePlace { only, inside, lowest, highest };

struct TunedVariant {
  std::string variant;
  size_t group = 0;  // at its best rate: index into the groups
  RatePlace place = RatePlace::only;
  double speed = kMissing;     // tokens/s (images/s): the median over all its runs at all rates, which do not change it
  double training = kMissing;  // how many times less training than the reference for the reference's loss (speedup.h)
  double time = kMissing;      // the same, charged with the speeds of both
};

struct VariantPair {
  size_t first = 0, second = 0;  // indices of variants
  PairedDifference difference;   // of held-out losses, first - second, by seed
};

// What a sweep asks is how its variants differ from the first. So those differences are corrected for each other alone;
// that of any other pair was looked at because it was there, and is corrected for all pairs.
struct FamilyComparison {
  std::string family;
  std::vector<TunedVariant> variants;          // that have a result; the first of the sweep is the reference
  std::vector<PairedDifference> to_reference;  // of each variant but the reference, in order; `holm` is over these
  std::vector<VariantPair> pairs;              // every one, the later variant first; `holm` is over all of them
  bool one_task = true;  // all were judged on the same held-out targets: else losses say nothing here

  // Of a variant less the reference; null for the reference itself.
  const PairedDifference* against_reference(size_t variant) const;
  // Between any two: corrected as one of to_reference where one of them is the reference, else as one of all pairs.
  PairedDifference between(size_t first, size_t second) const;
};

// A family for each of split_by_family, in its order; `runs` and `groups` as group_results has them.
std::vector<FamilyComparison> compare_variants(const std::vector<RunRecord>& runs,
                                               const std::vector<ResultGroup>& groups);

}  // namespace siamese::report

#include "siamese/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "siamese/report/judgement.h"
#include "siamese/report/measures.h"
#include "siamese/report/speedup.h"
#include "siamese/report/statistics.h"

namespace siamese::report {

namespace {

bool has_result(const ResultGroup& group) { return std::isfinite(group.val_loss.mean); }

// The better of two settings of one variant.
bool better(const ResultGroup& a, const ResultGroup& b) {
  if ((a.diverged > 0) != (b.diverged > 0)) return a.diverged == 0;
  if (a.partial != b.partial) return b.partial;
  return a.val_loss.mean < b.val_loss.mean;
}

double speed_of(const std::vector<RunRecord>& runs, const std::vector<ResultGroup>& groups,
                const std::vector<size_t>& of_variant) {
  std::vector<double> speeds;
  for (const size_t at : of_variant) {
    for (const size_t index : groups[at].runs) {
      const RunRecord& run = runs[index];
      const double speed = sees_images(run.family) ? run.median_samples_per_s() : run.median_tokens_per_s();
      if (std::isfinite(speed)) speeds.push_back(speed);
    }
  }
  return median(std::move(speeds));
}

// The settings of one variant, by rate.
TunedVariant tune(const std::vector<RunRecord>& runs, const std::vector<ResultGroup>& groups,
                  const std::vector<size_t>& of_variant) {
  TunedVariant tuned{.variant = groups[of_variant.front()].variant, .group = of_variant.front()};
  tuned.speed = speed_of(runs, groups, of_variant);
  std::vector<size_t> with_result;
  std::copy_if(of_variant.begin(), of_variant.end(), std::back_inserter(with_result),
               [&](size_t at) { return has_result(groups[at]); });
  tuned.group = *std::min_element(with_result.begin(), with_result.end(),
                                  [&](size_t a, size_t b) { return better(groups[a], groups[b]); });
  if (of_variant.size() == 1) return tuned;
  tuned.place = tuned.group == of_variant.front()  ? RatePlace::lowest
                : tuned.group == of_variant.back() ? RatePlace::highest
                                                   : RatePlace::inside;
  return tuned;
}

PairedDifference difference(const std::vector<RunRecord>& runs, const ResultGroup& first, const ResultGroup& second) {
  std::map<int64_t, double> by_seed;
  for (const size_t index : second.averaged) {
    if (runs[index].seed >= 0) by_seed[runs[index].seed] = runs[index].final_val_loss();
  }
  std::vector<double> differences;
  for (const size_t index : first.averaged) {
    const auto other = by_seed.find(runs[index].seed);
    if (other != by_seed.end()) differences.push_back(runs[index].final_val_loss() - other->second);
  }
  return paired_difference(differences);
}

// Every pair, and the speedups over the first variant.
void compare_pairs(const std::vector<RunRecord>& runs, const std::vector<ResultGroup>& groups,
                   FamilyComparison& family) {
  const auto best = [&](size_t variant) -> const ResultGroup& { return groups[family.variants[variant].group]; };
  for (size_t second = 0; second < family.variants.size(); ++second) {
    for (size_t first = second + 1; first < family.variants.size(); ++first) {
      family.pairs.push_back({first, second, difference(runs, best(first), best(second))});
    }
    if (second == 0) continue;
    TunedVariant& variant = family.variants[second];
    variant.training = speedup(runs, best(second), best(0));
    variant.time = variant.training * variant.speed / family.variants[0].speed;
  }
  for (const VariantPair& pair : family.pairs) {
    if (pair.second == 0) family.to_reference.push_back(pair.difference);
  }
  std::vector<PairedDifference*> asked, looked_at;
  for (PairedDifference& difference : family.to_reference) asked.push_back(&difference);
  for (VariantPair& pair : family.pairs) looked_at.push_back(&pair.difference);
  correct_by_holm(asked);
  correct_by_holm(looked_at);
}

}  // namespace

const PairedDifference* FamilyComparison::against_reference(size_t variant) const {
  return variant == 0 || variant > to_reference.size() ? nullptr : &to_reference[variant - 1];
}

PairedDifference FamilyComparison::between(size_t first, size_t second) const {
  const size_t later = std::max(first, second), earlier = std::min(first, second);
  const auto same = [&](const VariantPair& pair) { return pair.first == later && pair.second == earlier; };
  const auto pair = std::find_if(pairs.begin(), pairs.end(), same);
  if (pair == pairs.end()) return {};
  PairedDifference found = earlier == 0 ? to_reference[later - 1] : pair->difference;
  if (first == earlier) {
    found.mean = -found.mean;
    found.low = -std::exchange(found.high, -found.low);
  }
  return found;
}

std::vector<FamilyComparison> compare_variants(const std::vector<RunRecord>& runs,
                                               const std::vector<ResultGroup>& groups) {
  std::vector<FamilyComparison> families;
  for (size_t from = 0; from < groups.size();) {
    const ResultGroup& first = groups[from];
    if (families.empty() || families.back().family != first.family) families.push_back({.family = first.family});
    std::vector<size_t> of_variant;  // the settings of a variant stand together
    bool any = false;
    for (; from < groups.size() && groups[from].family == first.family && groups[from].variant == first.variant;
         ++from) {
      of_variant.push_back(from);
      any = any || has_result(groups[from]);
    }
    if (any) families.back().variants.push_back(tune(runs, groups, of_variant));
  }
  for (FamilyComparison& family : families) {
    compare_pairs(runs, groups, family);
    family.one_task = tasks_of(runs, family.family).size() < 2;
  }
  return families;
}

}  // namespace siamese::report

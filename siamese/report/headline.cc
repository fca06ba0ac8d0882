#include "siamese/report/headline.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "siamese/base/join.h"

namespace siamese::report {

namespace {

// How much lower `a` is than `b`.
PairedDifference advantage(const FamilyComparison& comparison, size_t a, size_t b) { return comparison.between(b, a); }

bool is_beyond_noise(const PairedDifference& difference) {
  return std::isfinite(difference.holm) && difference.holm < kNoiseLevel;
}

std::string signed_amount(double value) { return fmt::format("{:+.{}f}", value, std::fabs(value) < 0.01 ? 4 : 2); }
std::string amount(double value) { return fmt::format("{:.{}f}", value, std::fabs(value) < 0.01 ? 4 : 2); }

// In a sentence a comma ends a name: one that has a comma is quoted.
std::string one_name(const std::string& name) { return name.find(',') == std::string::npos ? name : "'" + name + "'"; }

std::string named(std::vector<std::string> names) {
  constexpr size_t kMost = 6;
  std::transform(names.begin(), names.end(), names.begin(), one_name);
  if (names.size() <= kMost) return join(names);
  return fmt::format("{} and {} more", join(std::vector<std::string>(names.begin(), names.begin() + kMost)),
                     names.size() - kMost);
}

// Nobody is better than the best constant prediction: then a difference is one of nothing learned.
bool all_stuck(const FamilyComparison& comparison, const std::vector<ResultGroup>& groups) {
  return std::all_of(comparison.variants.begin(), comparison.variants.end(), [&](const TunedVariant& variant) {
    const ResultGroup& group = groups[variant.group];
    return group.finished > 0 && group.stuck == group.finished;
  });
}

std::string main_clause(const std::string& best, const std::string& other, const std::string& where,
                        const PairedDifference& difference) {
  if (difference.n == 0) {
    return fmt::format("{} has the lowest mean held-out loss, but no seed in common with {}", best, other);
  }
  const std::string how_much = fmt::format("{} is {} {} than {}{}", best, amount(std::fabs(difference.mean)),
                                           difference.mean < 0 ? "higher" : "lower", other, where);
  if (difference.n == 1) return how_much + " (1 seed: what is noise is not known)";
  // Of the difference in loss, as the tables have it.
  return fmt::format("{}{} (95 % interval of the difference {} to {}, {} seeds)", how_much,
                     is_beyond_noise(difference) ? "" : ", which is within noise", signed_amount(-difference.high),
                     signed_amount(-difference.low), difference.n);
}

}  // namespace

std::string headline(const FamilyComparison& comparison, const std::vector<ResultGroup>& groups) {
  const auto& variants = comparison.variants;
  if (variants.size() < 2) return "";
  if (!comparison.one_task) {
    return "These runs were not all judged on the same held-out targets: their losses are not comparable.";
  }
  const auto loss = [&](size_t at) { return groups[variants[at].group].val_loss.mean; };
  const auto partial = [&](size_t at) { return groups[variants[at].group].partial; };
  std::vector<size_t> order(variants.size());
  for (size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return partial(a) != partial(b) ? partial(b) : loss(a) < loss(b); });
  const size_t best = order[0], other = best == 0 ? order[1] : 0;
  const bool tuned = std::any_of(variants.begin(), variants.end(),
                                 [](const TunedVariant& variant) { return variant.place != RatePlace::only; });
  std::string text = main_clause(one_name(variants[best].variant), one_name(variants[other].variant),
                                 tuned ? " at the best rate of each" : "", advantage(comparison, best, other));
  std::vector<std::string> within, beyond;
  for (const size_t at : order) {
    if (at == best || at == other) continue;
    const PairedDifference difference = advantage(comparison, best, at);
    if (is_beyond_noise(difference) && difference.mean > 0) {
      beyond.push_back(variants[at].variant);
    } else if (difference.n > 1 && !is_beyond_noise(difference)) {
      within.push_back(variants[at].variant);
    }
  }
  if (!within.empty()) text += fmt::format("; within noise of {}", named(within));
  if (!beyond.empty()) text += fmt::format("; lower than {}", named(beyond));
  const bool unfinished = partial(best) || partial(other);
  return (unfinished ? "So far, with no run finished: " : "") + text + "." +
         (all_stuck(comparison, groups) ? " All of these runs are stuck near the loss of the best constant prediction."
                                        : "");
}

}  // namespace siamese::report

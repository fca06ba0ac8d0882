#include "siamese/report/comparison_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "siamese/base/join.h"
#include "siamese/report/markdown_table.h"
#include "siamese/report/number_text.h"
#include "siamese/report/student.h"

namespace siamese::report {

namespace {

std::string fixed(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:+.{}f}", value, decimals) : "-";
}

std::string factor(double value) { return std::isfinite(value) ? fmt::format("{:.2f}x", value) : "-"; }

std::string best_rate(const TunedVariant& variant, const ResultGroup& group) {
  const char* const mark = variant.place == RatePlace::lowest ? "< " : variant.place == RatePlace::highest ? "> " : "";
  return mark + rate_text(group.lr);
}

TableRow table_row(const FamilyComparison& comparison, size_t at, const std::vector<ResultGroup>& groups) {
  const TunedVariant& variant = comparison.variants[at];
  const ResultGroup& group = groups[variant.group];
  TableRow row{name_cell(variant.variant), best_rate(variant, group), loss_text(group)};
  const PairedDifference* const difference = comparison.against_reference(at);
  if (difference == nullptr) {
    row.insert(row.end(), {"", "", "", "", "", "", ""});
    return row;
  }
  const bool interval = std::isfinite(difference->low);
  row.push_back(fixed(difference->mean, 4));
  row.push_back(interval ? fmt::format("{} to {}", fixed(difference->low, 4), fixed(difference->high, 4)) : "-");
  row.push_back(fmt::format("{}", difference->n));
  row.push_back(std::isfinite(difference->holm) ? fmt::format("{:.3f}", difference->holm) : "-");
  row.push_back(difference->verdict());
  row.push_back(factor(variant.training));
  row.push_back(factor(variant.time));
  return row;
}

}  // namespace

std::string resolution_sentence(const FamilyComparison& comparison) {
  size_t tests = 0, seeds = 0;
  for (const PairedDifference& difference : comparison.to_reference) {
    if (std::isfinite(difference.p)) ++tests;
    seeds = std::max(seeds, difference.n);
  }
  if (tests == 0) {
    return fmt::format("What is noise against {} is not known: that takes two seeds that both variants finished.",
                       comparison.variants.front().variant);
  }
  const auto n = static_cast<double>(seeds);
  const double least = student_quantile(kNoiseLevel / static_cast<double>(tests), n - 1) / std::sqrt(n);
  if (tests == 1) {
    return fmt::format(
        "With {} seeds a difference has to be {:.1f} times its standard deviation over the seeds to be beyond noise.",
        seeds, least);
  }
  return fmt::format(
      "p is corrected for these {} comparisons. With {} seeds even the clearest of them has to be {:.1f} times its "
      "standard deviation over the seeds to be beyond noise.",
      tests, seeds, least);
}

std::string pairs_sentence(const FamilyComparison& comparison) {
  constexpr size_t kMostNamed = 12;
  std::vector<std::string> beyond;
  size_t pairs = 0;
  for (const VariantPair& pair : comparison.pairs) {
    if (std::isfinite(pair.difference.p)) ++pairs;
    const std::string verdict = pair.difference.verdict();
    if (verdict != "lower" && verdict != "higher") continue;
    const auto& better = comparison.variants[verdict == "lower" ? pair.first : pair.second].variant;
    const auto& worse = comparison.variants[verdict == "lower" ? pair.second : pair.first].variant;
    beyond.push_back(fmt::format("{} is below {}", better, worse));
  }
  if (pairs == 0) return "";
  if (pairs == 1)
    return beyond.empty() ? "The difference is within noise." : "The difference is beyond noise: " + beyond[0] + ".";
  std::string text = fmt::format("Of all {} pairs of variants, corrected for as many, ", pairs);
  if (beyond.empty()) return text + "none differs beyond noise.";
  const size_t more = beyond.size() - std::min(beyond.size(), kMostNamed);
  const size_t count = beyond.size();
  beyond.resize(count - more);
  text += fmt::format("{} differ{} beyond noise: {}", count, count == 1 ? "s" : "", join(beyond, "; "));
  return text + (more > 0 ? fmt::format("; and {} more.", more) : ".");
}

std::string comparison_markdown(const FamilyComparison& comparison, const std::vector<ResultGroup>& groups) {
  if (comparison.variants.size() < 2) return "";
  const std::string reference = name_cell(comparison.variants.front().variant);
  std::vector<TableRow> rows;
  for (size_t at = 0; at < comparison.variants.size(); ++at) rows.push_back(table_row(comparison, at, groups));
  const bool tuned = std::any_of(comparison.variants.begin(), comparison.variants.end(),
                                 [](const TunedVariant& variant) { return variant.place != RatePlace::only; });
  std::string text = fmt::format("\nEach variant{} against {}, seed by seed:\n\n",
                                 tuned ? " at its best learning rate," : "", reference);
  text += markdown_table({"variant", "best lr", "val loss", "difference", "95 % interval", "seeds", "p (Holm)",
                          "verdict", "training", "time"},
                         rows);
  text += fmt::format("\n{}\n", name_cell(resolution_sentence(comparison)));
  if (const std::string pairs = pairs_sentence(comparison); !pairs.empty()) text += name_cell(pairs) + "\n";
  const bool at_an_end = std::any_of(comparison.variants.begin(), comparison.variants.end(), [](const auto& variant) {
    return variant.place == RatePlace::lowest || variant.place == RatePlace::highest;
  });
  if (at_an_end) text += "< >: the lowest or highest rate that was tried; a better one may lie beyond.\n";
  return text + fmt::format(
                    "training: how many times less training it needs for the loss of {}; time: the same, charged with "
                    "its own speed.\n",
                    reference);
}

}  // namespace siamese::report

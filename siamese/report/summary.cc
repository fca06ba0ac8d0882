#include "siamese/report/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "siamese/report/comparison_table.h"
#include "siamese/report/judgement.h"
#include "siamese/report/markdown_table.h"
#include "siamese/report/measures.h"
#include "siamese/report/number_text.h"

namespace siamese::report {

namespace {

std::string rounded(double value) { return std::isfinite(value) ? fmt::format("{:.0f}", value) : "-"; }

struct Column {
  std::string title;
  std::function<std::string(const ResultGroup&)> text;
};

Column measure_column(const MeasureColumn& measure) {
  return {name_cell(measure.title), [measure](const ResultGroup& group) -> std::string {
            const auto found = group.measures.find(measure.name);
            if (found == group.measures.end()) return "-";
            return spread_text(group, found->second, measure.percent ? 100 : 1, measure.decimals,
                               measure.percent ? " %" : "");
          }};
}

// Language models always have a column for accuracy, so that their tables keep one shape; every other measure has one
// where the family has it.
std::vector<Column> columns_of(const std::vector<ResultGroup>& groups) {
  using Group = const ResultGroup&;
  const std::string family = groups.empty() ? "lm" : groups.front().family;
  const auto any = [&](const auto& has) { return std::any_of(groups.begin(), groups.end(), has); };
  std::vector<Column> columns{
      {"variant", [](Group group) { return name_cell(group.variant) + (group.other_build ? " ^" : ""); }},
      {"lr", [](Group group) { return rate_text(group.lr); }},
      {"val loss", [](Group group) { return loss_text(group); }}};
  if (family == "lm" || any([](Group group) { return group.accuracy.count > 0; })) {
    columns.push_back({"accuracy", [](Group group) { return spread_text(group, group.accuracy, 100, 1, " %"); }});
  }
  for (const MeasureColumn& measure : measure_columns(groups)) {
    if (any([&](Group group) { return group.measures.contains(measure.name); }))
      columns.push_back(measure_column(measure));
  }
  columns.push_back({"runs", [](Group group) { return fmt::format("{}", group.runs.size()); }});
  columns.push_back({"diverged", [](Group group) { return fmt::format("{}", group.diverged); }});
  columns.push_back(
      {"stuck", [](Group group) -> std::string { return group.judged > 0 ? fmt::format("{}", group.stuck) : "-"; }});
  if (sees_images(family)) {
    columns.push_back({"images/s", [](Group group) { return rounded(group.samples_per_s); }});
  } else {
    columns.push_back({"tokens/s", [](Group group) { return rounded(group.tokens_per_s); }});
  }
  return columns;
}

std::string table(const std::vector<ResultGroup>& groups) {
  TableRow titles;
  std::vector<TableRow> rows(groups.size());
  for (const Column& column : columns_of(groups)) {
    titles.push_back(column.title);
    for (size_t at = 0; at < groups.size(); ++at) rows[at].push_back(column.text(groups[at]));
  }
  return markdown_table(titles, rows);
}

std::string footnotes(const std::vector<ResultGroup>& groups) {
  bool partial = false, fewer = false;
  size_t stuck = 0, unknown = 0, average_weights = 0, runs = 0;
  for (const ResultGroup& group : groups) {
    const bool judged = group.val_loss.count > 0 || group.accuracy.count > 0 || !group.measures.empty();
    partial = partial || (group.partial && judged);
    fewer = fewer || group.diverged > 0;
    stuck += group.stuck;
    unknown += group.finished - group.judged;
    average_weights += group.average_weights;
    runs += group.runs.size();
  }
  std::string text;
  if (partial) text += "\n\\* no run has finished yet: latest evaluation so far\n";
  if (fewer) {
    text +=
        "\nDiverged: not finite, or trained from scratch and worse at the end than before the first step. Such runs "
        "have "
        "no final\nloss: means are over the others, and say over how many.\n";
  }
  if (stuck > 0) {
    text += fmt::format(
        "\nStuck: finished, but within {:.0f} % of the way from the loss of the best constant prediction to the best "
        "run's. "
        "Stuck runs\nare in the means.\n",
        100 * kStuckProgress);
  }
  if (unknown > 0) {
    text += fmt::format("\nOf {} finished run{} nobody knows whether {} stuck: no baseline was recorded.\n", unknown,
                        unknown == 1 ? "" : "s", unknown == 1 ? "it is" : "they are");
  }
  if (average_weights > 0) {
    text +=
        fmt::format("\nEvaluations are of averaged weights (eval.averaged) in {} of {} runs.\n", average_weights, runs);
  }
  return text;
}

}  // namespace

std::string summary_markdown(const std::vector<ResultGroup>& groups, const std::vector<FamilyComparison>& comparisons) {
  const auto families = split_by_family(groups);
  if (families.empty()) return table({});
  std::string text;
  for (const auto& family : families) {
    if (families.size() > 1) {
      text += fmt::format("{}### {}\n\n", text.empty() ? "" : "\n", name_cell(family.front().family));
    }
    text += table(family);
  }
  text += footnotes(groups);
  for (const FamilyComparison& comparison : comparisons) text += comparison_markdown(comparison, groups);
  return text;
}

}  // namespace siamese::report

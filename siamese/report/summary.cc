#include "siamese/report/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "siamese/base/utf8.h"
#include "siamese/report/measures.h"

namespace siamese::report {

namespace {

using Row = std::vector<std::string>;

std::string with_spread(const MeanSpread& value, double scale, int decimals, const char* unit, bool partial) {
  if (value.count == 0) return "-";
  std::string text = fmt::format("{:.{}f}", value.mean * scale, decimals);
  if (value.count > 1) text += fmt::format(" +- {:.{}f}", value.spread * scale, decimals);
  return text + unit + (partial ? "*" : "");
}

std::string rounded(double value) { return std::isfinite(value) ? fmt::format("{:.0f}", value) : "-"; }

// '|' would end a Markdown cell, and the table is printed too: a name must not steer the terminal.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (c == '|') safe += '\\';
    safe += c;
  }
  return safe;
}

struct Column {
  std::string title;
  std::function<std::string(const ResultGroup&)> text;
};

Column measure_column(const MeasureColumn& measure) {
  return {std::string(measure.title), [measure](const ResultGroup& group) -> std::string {
            const auto found = group.measures.find(std::string(measure.name));
            if (found == group.measures.end()) return "-";
            return with_spread(found->second, measure.percent ? 100 : 1, measure.decimals, measure.percent ? " %" : "",
                               group.partial);
          }};
}

// Language models always have a column for accuracy, so that their tables keep one shape; every other measure has one
// where the family has it.
std::vector<Column> columns_of(const std::vector<ResultGroup>& groups) {
  using Group = const ResultGroup&;
  const std::string family = groups.empty() ? "lm" : groups.front().family;
  const auto any = [&](const auto& has) { return std::any_of(groups.begin(), groups.end(), has); };
  std::vector<Column> columns{
      {"variant", [](Group group) { return cell(group.variant) + (group.other_build ? " ^" : ""); }},
      {"lr", [](Group group) -> std::string { return std::isfinite(group.lr) ? fmt::format("{:g}", group.lr) : "-"; }},
      {"val loss", [](Group group) { return with_spread(group.val_loss, 1, 4, "", group.partial); }}};
  if (family == "lm" || any([](Group group) { return group.accuracy.count > 0; })) {
    columns.push_back(
        {"accuracy", [](Group group) { return with_spread(group.accuracy, 100, 1, " %", group.partial); }});
  }
  for (const MeasureColumn& measure : measure_columns()) {
    const std::string name(measure.name);
    if (any([&](Group group) { return group.measures.contains(name); })) columns.push_back(measure_column(measure));
  }
  columns.push_back({"runs", [](Group group) { return fmt::format("{}", group.runs.size()); }});
  columns.push_back({"diverged", [](Group group) { return fmt::format("{}", group.diverged); }});
  if (sees_images(family)) {
    columns.push_back({"images/s", [](Group group) { return rounded(group.samples_per_s); }});
  } else {
    columns.push_back({"tokens/s", [](Group group) { return rounded(group.tokens_per_s); }});
  }
  return columns;
}

std::string table(const std::vector<ResultGroup>& groups) {
  std::vector<Row> rows(groups.size());
  Row header;
  std::vector<size_t> widths;
  for (const Column& column : columns_of(groups)) {
    header.push_back(column.title);
    widths.push_back(std::max<size_t>(3, column.title.size()));
    for (size_t at = 0; at < groups.size(); ++at) {
      rows[at].push_back(column.text(groups[at]));
      widths.back() = std::max(widths.back(), text_columns(rows[at].back()));
    }
  }
  std::string text;
  const auto append = [&](const Row& row) {
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - text_columns(row[column]), ' ');
      text += column == 0 ? fmt::format("| {}{}", row[column], padding) : fmt::format(" | {}{}", padding, row[column]);
    }
    text += " |\n";
  };
  append(header);
  for (size_t column = 0; column < widths.size(); ++column) {
    const std::string rule(widths[column] + 1, '-');
    text += fmt::format("|{}{}", rule, column == 0 ? "-" : ":");
  }
  text += "|\n";
  for (const Row& row : rows) append(row);
  return text;
}

std::string footnotes(const std::vector<ResultGroup>& groups) {
  bool partial = false;
  size_t stuck = 0, averaged = 0, runs = 0;
  for (const ResultGroup& group : groups) {
    const bool judged = group.val_loss.count > 0 || group.accuracy.count > 0 || !group.measures.empty();
    partial = partial || (group.partial && judged);
    stuck += group.stuck;
    averaged += group.averaged;
    runs += group.runs.size();
  }
  std::string text;
  if (partial) text += "\n\\* no run has finished yet: latest evaluation so far\n";
  if (stuck > 0) {
    text += fmt::format(
        "\n{} of the diverged runs {} stuck rather than not finite: the loss at the end is above half of the first, "
        "while "
        "the same variant\nat another learning rate ends at or below half. Diverged runs are not in the means.\n",
        stuck, stuck == 1 ? "is" : "are");
  }
  if (averaged > 0) {
    text += fmt::format("\nEvaluations are of averaged weights (eval.averaged) in {} of {} runs.\n", averaged, runs);
  }
  return text;
}

}  // namespace

std::string summary_markdown(const std::vector<ResultGroup>& groups) {
  const auto families = split_by_family(groups);
  if (families.empty()) return table({});
  std::string text;
  for (const auto& family : families) {
    if (families.size() > 1) {
      text += fmt::format("{}### {}\n\n", text.empty() ? "" : "\n", cell(family.front().family));
    }
    text += table(family);
  }
  return text + footnotes(groups);
}

}  // namespace siamese::report

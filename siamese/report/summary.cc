#include "siamese/report/summary.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace siamese::report {

namespace {

constexpr size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;

std::string with_spread(const MeanSpread& value, double scale, int decimals, const char* unit, bool partial) {
  if (value.count == 0) return "-";
  std::string text = fmt::format("{:.{}f}", value.mean * scale, decimals);
  if (value.count > 1) text += fmt::format(" +- {:.{}f}", value.spread * scale, decimals);
  return text + unit + (partial ? "*" : "");
}

// '|' would end a Markdown cell.
std::string cell(const std::string& text) {
  std::string safe;
  for (char c : text) {
    if (c == '|') safe += '\\';
    safe += c == '\n' ? ' ' : c;
  }
  return safe;
}

// Columns count characters, not bytes, so that UTF-8 names line up.
size_t display_width(const std::string& text) {
  size_t width = 0;
  for (char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return width;
}

}  // namespace

std::string summary_markdown(const std::vector<ResultGroup>& groups) {
  const Row header{"variant", "lr", "val loss", "accuracy", "runs", "diverged", "tokens/s"};
  std::vector<Row> rows;
  bool partial = false;
  size_t stuck = 0;
  for (const ResultGroup& group : groups) {
    partial = partial || (group.partial && (group.val_loss.count > 0 || group.accuracy.count > 0));
    stuck += group.stuck;
    rows.push_back({cell(group.variant), std::isfinite(group.lr) ? fmt::format("{:g}", group.lr) : "-",
                    with_spread(group.val_loss, 1, 4, "", group.partial),
                    with_spread(group.accuracy, 100, 1, " %", group.partial), fmt::format("{}", group.runs.size()),
                    fmt::format("{}", group.diverged),
                    std::isfinite(group.tokens_per_s) ? fmt::format("{:.0f}", group.tokens_per_s) : "-"});
  }
  std::array<size_t, kColumns> widths{};
  for (size_t column = 0; column < kColumns; ++column) {
    widths[column] = std::max<size_t>(3, header[column].size());
    for (const Row& row : rows) widths[column] = std::max(widths[column], display_width(row[column]));
  }
  std::string text;
  const auto append = [&](const Row& row) {
    for (size_t column = 0; column < kColumns; ++column) {
      const std::string padding(widths[column] - display_width(row[column]), ' ');
      text += column == 0 ? fmt::format("| {}{}", row[column], padding) : fmt::format(" | {}{}", padding, row[column]);
    }
    text += " |\n";
  };
  append(header);
  for (size_t column = 0; column < kColumns; ++column) {
    const std::string rule(widths[column] + 1, '-');
    text += fmt::format("|{}{}", rule, column == 0 ? "-" : ":");
  }
  text += "|\n";
  for (const Row& row : rows) append(row);
  if (partial) text += "\n\\* no run has finished yet: latest evaluation so far\n";
  if (stuck > 0) {
    text += fmt::format(
        "\n{} of the diverged runs {} stuck rather than not finite: the loss at the end is above half of the first, "
        "while "
        "the same variant\nat another learning rate ends at or below half. Diverged runs are not in the means.\n",
        stuck, stuck == 1 ? "is" : "are");
  }
  return text;
}

}  // namespace siamese::report

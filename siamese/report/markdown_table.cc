#include "siamese/report/markdown_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "siamese/base/utf8.h"

namespace siamese::report {

std::string markdown_table(const TableRow& titles, const std::vector<TableRow>& rows) {
  std::vector<size_t> widths;
  for (size_t column = 0; column < titles.size(); ++column) {
    widths.push_back(std::max<size_t>(3, text_columns(titles[column])));
    for (const TableRow& row : rows) widths.back() = std::max(widths.back(), text_columns(row[column]));
  }
  std::string text;
  const auto append = [&](const TableRow& row) {
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - text_columns(row[column]), ' ');
      text += column == 0 ? fmt::format("| {}{}", row[column], padding) : fmt::format(" | {}{}", padding, row[column]);
    }
    text += " |\n";
  };
  append(titles);
  for (size_t column = 0; column < widths.size(); ++column) {
    const std::string rule(widths[column] + 1, '-');
    text += fmt::format("|{}{}", rule, column == 0 ? "-" : ":");
  }
  text += "|\n";
  for (const TableRow& row : rows) append(row);
  return text;
}

std::string name_cell(const std::string& text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (c == '|') safe += '\\';
    safe += c;
  }
  return safe;
}

}  // namespace siamese::report

#include "siamese/cli/table.h"

#include <algorithm>

#include "siamese/base/utf8.h"

namespace siamese::cli {

std::string text_table(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);  // a name from somebody's file must not steer the terminal
      widths[i] = std::max(widths[i], text_columns(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - text_columns(row[i]) + 2, ' ');
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace siamese::cli

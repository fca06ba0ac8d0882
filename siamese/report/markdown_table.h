// A table for terminals and README: padded, so that it reads as text, and Markdown.
#pragma once

#include <string>
#include <vector>

namespace siamese::report {

using TableRow = std::vector<std::string>;

// The first column stands left, the others right. Every row has a cell for each title.
std::string markdown_table(const TableRow& titles, const std::vector<TableRow>& rows);

// A name from a run's files as a cell: '|' would end it, and the table is printed too: a name must not steer the
// terminal.
std::string name_cell(const std::string& text);

}  // namespace siamese::report

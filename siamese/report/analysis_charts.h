// What the page of an analysis draws: charts by depth, each with a panel for every analysis that is compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "siamese/runs/analysis_record.h"

namespace siamese::report {

// The name of the line that changed losses are held against.
inline constexpr std::string_view kUnchanged = "nothing changed";

struct DepthLine {
  std::string name;
  std::vector<double> x, y;
};

struct DepthChart {
  std::string title, lead;
  std::string x_label;
  bool log = false;
  bool points = false;                         // without lines between them
  bool from_zero = false;                      // no value lies below
  std::vector<std::vector<DepthLine>> panels;  // of each analysis; empty: it has no such numbers

  bool empty() const;
};

struct DepthSection {
  std::string id, title;
  std::vector<DepthChart> charts;
};

// Without the charts that nobody has numbers for.
std::vector<DepthSection> analysis_sections(const std::vector<runs::AnalysisRecord>& analyses);

}  // namespace siamese::report

// What the page of an analysis draws as colours: matrices over depth, each with a panel for every analysis that is
// compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/report/analysis_charts.h"
#include "siamese/runs/analysis_arrays.h"

namespace siamese::report {

// An analysis as it is drawn.
struct DrawnAnalysis {
  runs::AnalysisRecord record;
  std::vector<runs::AnalysisArray> arrays = {};
};

// What a row or a column of a map is.
enum class MapAxis { place, block, head, stream, first, last };  // first, last: block of a range

struct MapPanel {
  int64_t rows = 0, columns = 0;  // 0: this analysis has no such numbers
  std::vector<double> values;     // row by row
};

struct DepthMap {
  std::string section;  // id of the one it is drawn in
  std::string title, lead;
  MapAxis row = MapAxis::place, column = MapAxis::place;
  bool by_row = false;           // each row from 0 to its own largest: rows of few streams have larger weights
  std::vector<MapPanel> panels;  // of each analysis
};

// Without those that nobody has numbers for, or that have more than a page should carry (2^18): the file has them.
std::vector<DepthMap> analysis_maps(const std::vector<DrawnAnalysis>& analyses);

}  // namespace siamese::report

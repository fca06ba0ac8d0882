#include "siamese/report/analysis_maps.h"

#include <algorithm>
#include <cmath>

namespace siamese::report {

namespace maps_detail {

constexpr size_t kMostNumbers = size_t{1} << 18;

// The matrix of that name; of an array with a third dimension its first slice.
MapPanel panel_of(const std::vector<runs::AnalysisArray>& arrays, const std::string& name, size_t dimensions) {
  const runs::AnalysisArray* const array = runs::find_array(arrays, name, dimensions);
  if (array == nullptr || array->values.empty() || array->values.size() > kMostNumbers) return {};
  MapPanel panel{.rows = array->shape[0], .columns = array->shape[1], .values = {}};
  const size_t step = array->values.size() / static_cast<size_t>(panel.rows * panel.columns);
  for (size_t i = 0; i < array->values.size(); i += step) panel.values.push_back(array->values[i]);
  return panel;
}

// Some cells are none: streams that are not there yet.
bool has_gaps(const MapPanel& panel) {
  return std::any_of(panel.values.begin(), panel.values.end(), [](double value) { return std::isnan(value); });
}

// What leaving out each range adds to the loss, by its first and its last block; where every range was measured.
MapPanel ranges_of(const runs::AnalysisRecord& record) {
  const auto blocks = static_cast<size_t>(record.blocks);
  if (blocks < 2 || blocks * blocks > kMostNumbers || record.ranges.size() != blocks * (blocks + 1) / 2) return {};
  MapPanel panel{record.blocks, record.blocks, std::vector<double>(blocks * blocks, runs::kNone)};
  for (const runs::RangeAnalysis& range : record.ranges) {
    const auto first = static_cast<size_t>(range.first), count = static_cast<size_t>(range.blocks);
    if (range.first < 0 || range.blocks < 1 || first >= blocks || count > blocks - first) return {};
    panel.values[first * blocks + first + count - 1] = range.loss - record.changed_loss;
  }
  return panel;
}

bool is_empty(const DepthMap& map) {
  return std::all_of(map.panels.begin(), map.panels.end(), [](const MapPanel& panel) { return panel.rows == 0; });
}

}  // namespace maps_detail

std::vector<DepthMap> analysis_maps(const std::vector<DrawnAnalysis>& analyses) {
  struct Source {
    const char* array;
    size_t dimensions;
    DepthMap about;
  };
  const std::vector<Source> sources = {
      {"attention/first",
       3,
       {"attention",
        "First token, by head",
        "Mean weight on the first token of a document, over the tokens that see it",
        MapAxis::block,
        MapAxis::head,
        {}}},
      {"attention/largest",
       2,
       {"attention",
        "Largest token, by head",
        "The same for the token with the largest value of any stream there",
        MapAxis::block,
        MapAxis::head,
        {}}},
      {"similarity/cosine",
       2,
       {"similarity",
        "Cosine",
        "Mean over tokens, between the states that the lens of all streams reads at two places",
        MapAxis::place,
        MapAxis::place,
        {}}},
      {"similarity/cka", 2, {"similarity", "Linear CKA", "Of the same states", MapAxis::place, MapAxis::place, {}}},
      {"depth/weights",
       2,
       {"use",
        "Weights of the reads",
        "That the scheme itself gives to each stream; in the last row, of attn_res, at the close",
        MapAxis::place,
        MapAxis::stream,
        {}}}};
  std::vector<DepthMap> maps;
  for (const Source& source : sources) {
    DepthMap map = source.about;
    for (const DrawnAnalysis& analysis : analyses) {
      map.panels.push_back(maps_detail::panel_of(analysis.arrays, source.array, source.dimensions));
    }
    map.by_row =
        map.column == MapAxis::stream && std::any_of(map.panels.begin(), map.panels.end(), maps_detail::has_gaps);
    if (!maps_detail::is_empty(map)) maps.push_back(std::move(map));
  }
  DepthMap ranges = {"pruning",
                     "Every range of blocks left out",
                     "Held-out loss that is added without the blocks from first to last",
                     MapAxis::first,
                     MapAxis::last,
                     {}};
  for (const DrawnAnalysis& analysis : analyses) ranges.panels.push_back(maps_detail::ranges_of(analysis.record));
  if (!maps_detail::is_empty(ranges)) maps.push_back(std::move(ranges));
  return maps;
}

}  // namespace siamese::report

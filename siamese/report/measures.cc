#include "siamese/report/measures.h"

#include <algorithm>
#include <array>

namespace siamese::report {

std::span<const MeasureColumn> measure_columns() {
  static constexpr std::array<MeasureColumn, 7> kColumns{{{"top1", "top-1", true, 1},
                                                          {"top5", "top-5", true, 1},
                                                          {"feature_distance", "feature distance", false, 2},
                                                          {"class_agreement", "class agreement", true, 1},
                                                          {"mse", "mse", false, 4},
                                                          {"vlb", "vlb", false, 5},
                                                          {"expert_max_load", "max load", false, 2}}};
  return kColumns;
}

bool is_measure(std::string_view name) {
  const auto columns = measure_columns();
  return std::any_of(columns.begin(), columns.end(), [&](const MeasureColumn& column) { return column.name == name; });
}

bool sees_images(std::string_view family) { return family == "vit" || family == "dit"; }

}  // namespace siamese::report

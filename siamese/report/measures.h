// What the families measure beside the loss, and how their results are called where people read them.
//   vit  top1, top5: share of held-out images whose class is the first guess, or among the first five
//   dit  mse, vlb: the two parts of its loss; feature_distance: Frechet distance between the features a classifier
//        gives to samples and to held-out images; class_agreement: share of samples it takes for the class asked for
//   moe  expert_max_load: largest load of any expert in any block; 1 = all alike
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace siamese::report {

struct MeasureColumn {
  std::string_view name;   // in the files
  std::string_view title;  // of a column
  bool percent;
  int decimals;
};

// In the order of the columns of a table.
std::span<const MeasureColumn> measure_columns();
bool is_measure(std::string_view name);

// Families that see images: their speed is images/s, not tokens/s.
bool sees_images(std::string_view family);

}  // namespace siamese::report

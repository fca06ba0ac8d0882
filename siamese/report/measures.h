// What the families measure beside the loss, and how their results are called where people read them.
//   vit  top1, top5: share of held-out images whose class is the first guess, or among the first five
//   dit  mse, vlb: the two parts of its loss; feature_distance: Frechet distance between the features a classifier
//        gives to samples and to held-out images; class_agreement: share of samples it takes for the class asked for
//   moe  expert_max_load: largest load of any expert in any block; 1 = all alike
//   lm, moe  bits_per_byte: the loss per byte of text, where its bytes are known; "web loss": that of a held-out set of
//        data.mix; "piqa/rc_0shot len_norm": of a task the metric it is reported by (docs/tasks.md)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siamese::report {

struct ResultGroup;

struct MeasureColumn {
  std::string name;   // in the files
  std::string title;  // of a column
  bool percent;
  int decimals;
};

// In the order of the columns of a table: those of the families, then held-out sets and tasks of these results by name.
std::vector<MeasureColumn> measure_columns(const std::vector<ResultGroup>& groups);
bool is_measure(std::string_view name);

// Families that see images: their speed is images/s, not tokens/s.
bool sees_images(std::string_view family);

}  // namespace siamese::report

#include "siamese/report/measures.h"

#include <algorithm>
#include <array>
#include <set>

#include "siamese/report/aggregate.h"
#include "siamese/runs/eval_record.h"

namespace siamese::report {
namespace {

const std::array<MeasureColumn, 8>& family_columns() {
  static const std::array<MeasureColumn, 8> kColumns{{{std::string(runs::kBitsPerByte), "bits per byte", false, 4},
                                                      {"top1", "top-1", true, 1},
                                                      {"top5", "top-5", true, 1},
                                                      {"feature_distance", "feature distance", false, 2},
                                                      {"class_agreement", "class agreement", true, 1},
                                                      {"mse", "mse", false, 4},
                                                      {"vlb", "vlb", false, 5},
                                                      {"expert_max_load", "max load", false, 2}}};
  return kColumns;
}

bool is_family_measure(std::string_view name) {
  const auto& columns = family_columns();
  return std::any_of(columns.begin(), columns.end(), [&](const MeasureColumn& column) { return column.name == name; });
}

// The metric in "piqa/rc_0shot len_norm"; "" when it is not the name of a task's result.
std::string_view task_metric(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kMetrics{
      "acc", "len_norm", "acc_per_byte", "acc_per_token", "acc_uncond", "pmi_dc", "ce_loss", "bpb", "exact_match"};
  const size_t space = name.rfind(' ');
  if (space == std::string_view::npos || space == 0) return {};
  const std::string_view metric = name.substr(space + 1);
  std::string_view plain = metric;
  if (plain.ends_with("_v1")) plain.remove_suffix(3);
  return std::find(kMetrics.begin(), kMetrics.end(), plain) != kMetrics.end() ? metric : std::string_view{};
}

bool is_set_loss(std::string_view name) { return name != runs::kBitsPerByte && runs::is_text_loss(name); }

bool is_loss(std::string_view metric) { return metric.starts_with("ce_loss") || metric.starts_with("bpb"); }

}  // namespace

std::vector<MeasureColumn> measure_columns(const std::vector<ResultGroup>& groups) {
  std::vector<MeasureColumn> columns(family_columns().begin(), family_columns().end());
  std::set<std::string> sets, tasks;
  for (const ResultGroup& group : groups) {
    for (const auto& [name, value] : group.measures) {
      if (!task_metric(name).empty()) tasks.insert(name);
      if (is_set_loss(name)) sets.insert(name);
    }
  }
  for (const std::string& name : sets) columns.push_back({name, name, false, 4});
  for (const std::string& name : tasks) {
    const bool loss = is_loss(task_metric(name));
    columns.push_back({name, name, !loss, loss ? 4 : 1});
  }
  return columns;
}

bool is_measure(std::string_view name) {
  return is_family_measure(name) || is_set_loss(name) || !task_metric(name).empty();
}

bool sees_images(std::string_view family) { return family == "vit" || family == "dit"; }

}  // namespace siamese::report

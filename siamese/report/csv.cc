#include "siamese/report/csv.h"

#include <cmath>

#include <fmt/format.h>

#include "siamese/base/join.h"
#include "siamese/report/measures.h"

namespace siamese::report {

namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + "\"";
}

std::string cell_of(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

void add_spread(std::vector<std::string>& row, const MeanSpread& value) {
  row.push_back(value.count > 0 ? cell_of(value.mean) : "");
  row.push_back(value.count > 1 ? cell_of(value.spread) : "");
}

}  // namespace

std::string results_csv(const std::vector<ResultGroup>& groups) {
  std::vector<std::string> head = {"family",   "variant",     "lr",         "runs",          "finished", "diverged",
                                   "val_loss", "val_loss_sd", "train_loss", "train_loss_sd", "accuracy", "accuracy_sd"};
  const std::vector<MeasureColumn> measures = measure_columns(groups);
  for (const MeasureColumn& measure : measures) {
    head.push_back(quoted(measure.name));
    head.push_back(quoted(measure.name + "_sd"));
  }
  head.insert(head.end(), {"tokens_per_s", "samples_per_s", "stuck", "other_build"});
  std::string text = join(head, ",") + "\n";
  for (const ResultGroup& group : groups) {
    std::vector<std::string> row = {quoted(group.family),
                                    quoted(group.variant),
                                    cell_of(group.lr),
                                    fmt::format("{}", group.runs.size()),
                                    fmt::format("{}", group.finished),
                                    fmt::format("{}", group.diverged)};
    add_spread(row, group.val_loss);
    add_spread(row, group.train_loss);
    add_spread(row, group.accuracy);
    for (const MeasureColumn& measure : measures) {
      const auto found = group.measures.find(measure.name);
      add_spread(row, found != group.measures.end() ? found->second : MeanSpread{kMissing, kMissing, 0});
    }
    row.push_back(cell_of(group.tokens_per_s));
    row.push_back(cell_of(group.samples_per_s));
    row.push_back(fmt::format("{}", group.stuck));
    row.push_back(group.other_build ? "1" : "0");
    text += join(row, ",") + "\n";
  }
  return text;
}

}  // namespace siamese::report

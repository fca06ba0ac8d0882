#include "siamese/report/page_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "siamese/report/builds.h"
#include "siamese/report/config_difference.h"
#include "siamese/report/downsample.h"
#include "siamese/report/measures.h"
#include "siamese/report/page.h"
#include "siamese/report/page_depth.h"
#include "siamese/report/page_families.h"
#include "siamese/report/page_numbers.h"
#include "siamese/report/page_provenance.h"
#include "siamese/report/page_results.h"
#include "siamese/report/remarks.h"

namespace siamese::report {

namespace {

using nlohmann::json;

// Step by step the extremes are the value itself and are left out; in a record line they are not known.
json curve(const StepGrid& grid, const RunRecord& run, const std::vector<double>& values) {
  if (run.recorded) return {{"mean", numbers(spread_over_grid(grid, run.metrics.step, values), kCurveDigits)}};
  const BucketedCurve bucketed = bucket_curve(grid, run.metrics.step, values);
  json object{{"mean", numbers(bucketed.mean, kCurveDigits)}};
  if (!grid.exact()) {
    object["low"] = numbers(bucketed.low, kCurveDigits);
    object["high"] = numbers(bucketed.high, kCurveDigits);
  }
  return object;
}

// Curves that only some families have: no key without a value.
void add_family_curves(const RunRecord& run, const StepGrid& grid, json& object) {
  for (const char* key : {"balance_loss", "router_z_loss", "expert_max_load", "mse", "vlb"}) {
    for (const StepColumn& column : step_columns()) {
      const std::vector<double>& values = run.metrics.*column.values;
      const auto recorded = [](double value) { return std::isfinite(value); };
      if (std::string_view(column.key) != key || std::none_of(values.begin(), values.end(), recorded)) continue;
      object[key] = curve(grid, run, values);
    }
  }
}

json run_object(const RunRecord& run, const StepGrid& grid) {
  json evals = json::array();
  for (const EvalRow& row : run.evals) evals.push_back(eval_object(row));
  const EvalRow* last = run.last_accuracy();
  const StepColumns& metrics = run.metrics;
  json object{{"dir", run.dir},
              {"family", run.family},
              {"variant", run.variant},
              {"lr", number(run.lr)},
              {"seed", run.seed < 0 ? json(nullptr) : json(run.seed)},
              {"state", state_text(run.state)},
              {"stuck", run.stuck},
              {"progress", number(run.progress)},
              {"baseline", number(run.baseline())},
              {"recorded", run.recorded.has_value()},
              {"averaged", run.judges_average()},
              {"scheme", run.scheme},
              {"label", run.label},
              {"message", run.message},
              {"step", run.step},
              {"steps", run.steps},
              {"parameters", run.parameters},
              {"tokens", metrics.tokens.empty() ? json(nullptr) : number(metrics.tokens.back(), 12)},
              {"skipped", metrics.skipped},
              {"outliers", metrics.outliers},
              {"seconds", number(run.seconds())},
              {"train_loss", number(run.final_train_loss())},
              {"val_loss", number(run.final_val_loss())},
              {"accuracy", number(run.final_accuracy())},
              {"accuracy_groups", accuracy_groups(last ? last->groups : std::vector<AccuracyGroup>{})},
              {"tokens_per_s", number(run.median_tokens_per_s(), kCurveDigits)},
              {"samples_per_s", number(run.median_samples_per_s(), kCurveDigits)},
              {"measures", measures_object(run.final_measures())},
              {"loss", curve(grid, run, metrics.loss)},
              {"grad_norm", curve(grid, run, metrics.grad_norm)},
              {"lr_curve", curve(grid, run, metrics.lr)},
              {"speed", curve(grid, run, sees_images(run.family) ? metrics.samples_per_s : metrics.tokens_per_s)},
              {"evals", std::move(evals)},
              {"depth", depth_profiles(run.snapshots)},
              {"experts", expert_loads(run.snapshots)},
              {"confusion", confusion_object(run.evals)},
              {"stretches", stretches_object(run)},
              {"config", run.config_text},
              {"notes", run.notes}};
  add_family_curves(run, grid, object);
  return object;
}

}  // namespace

std::string page_data(const Collection& collection, const std::vector<ResultGroup>& groups,
                      const std::vector<FamilyComparison>& comparisons) {
  int64_t last_step = 0;
  for (const RunRecord& run : collection.runs) {
    if (!run.metrics.step.empty()) last_step = std::max(last_step, run.metrics.step.back());
  }
  const StepGrid grid(last_step);
  json data{{"sweep", collection.is_sweep},
            {"comparison", collection.is_comparison},
            {"name", collection.name},
            {"grids_left_out", collection.grids_left_out},
            {"builds_note", builds_note(collection)},
            {"data_note", data_note(collection)},
            {"grid", {{"first", json::array()}, {"last", json::array()}}},
            {"runs", json::array()},
            {"groups", groups_object(groups, comparisons)},
            {"comparisons", comparisons_object(groups, comparisons)},
            {"differences", json::array()}};
  for (int64_t bucket = 0; bucket < grid.size(); ++bucket) {
    data["grid"]["first"].push_back(grid.first_step(bucket));
    data["grid"]["last"].push_back(grid.last_step(bucket));
  }
  for (const RunRecord& run : collection.runs) data["runs"].push_back(run_object(run, grid));
  if (collection.is_sweep) {
    for (const ConfigDifference& difference : config_differences(collection.runs)) {
      data["differences"].push_back({{"key", difference.key}, {"values", difference.values}});
    }
  }
  return escape_json_for_script(data.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace));
}

}  // namespace siamese::report

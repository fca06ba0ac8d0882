#include "siamese/report/page_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "siamese/report/config_difference.h"
#include "siamese/report/downsample.h"
#include "siamese/report/page.h"

namespace siamese::report {

namespace {

using nlohmann::json;

constexpr int kCurveDigits = 5;
constexpr int kDepthDigits = 4;

json number(double value, int digits = 7) {
  if (!std::isfinite(value)) return nullptr;
  const double rounded = round_significant(value, digits);
  // "3" instead of "3.0": most of a page is numbers.
  if (rounded == std::floor(rounded) && std::fabs(rounded) < 1e15) return static_cast<int64_t>(rounded);
  return rounded;
}

json numbers(const std::vector<double>& values, int digits) {
  json list = json::array();
  for (double value : values) list.push_back(number(value, digits));
  return list;
}

json spread(const MeanSpread& value) {
  return {{"mean", number(value.mean)}, {"spread", number(value.spread)}, {"count", value.count}};
}

json accuracy_groups(const std::vector<AccuracyGroup>& groups) {
  json list = json::array();
  for (const AccuracyGroup& group : groups) {
    list.push_back(
        {{"operation", group.operation}, {"digits", group.digits}, {"correct", group.correct}, {"count", group.count}});
  }
  return list;
}

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

// Columns by site: {steps, sites: [{block, kind}], streams: [name], rows: [{grad, in, out, before: [[..]], after:
// [[..]]}]}
json depth_profiles(const std::vector<SiteSnapshot>& snapshots) {
  std::vector<std::string> names;
  const SiteSnapshot* widest = nullptr;
  for (const SiteSnapshot& snapshot : snapshots) {
    if (!widest || snapshot.sites.size() > widest->sites.size()) widest = &snapshot;
    for (const SiteRow& site : snapshot.sites) {
      for (const StreamRms& stream : site.streams) {
        if (std::find(names.begin(), names.end(), stream.name) == names.end()) names.push_back(stream.name);
      }
    }
  }
  if (!widest) return nullptr;
  json object{{"steps", json::array()}, {"sites", json::array()}, {"streams", names}, {"rows", json::array()}};
  for (const SiteRow& site : widest->sites) object["sites"].push_back({{"block", site.block}, {"kind", site.kind}});
  for (const SiteSnapshot& snapshot : snapshots) {
    const size_t count = snapshot.sites.size();
    std::vector<double> grad(count), in(count), out(count);
    std::vector<std::vector<double>> before(names.size(), std::vector<double>(count, kMissing)), after = before;
    for (size_t at = 0; at < count; ++at) {
      const SiteRow& site = snapshot.sites[at];
      grad[at] = site.grad_norm;
      in[at] = site.branch_in;
      out[at] = site.branch_out;
      for (const StreamRms& stream : site.streams) {
        const auto name = static_cast<size_t>(std::find(names.begin(), names.end(), stream.name) - names.begin());
        before[name][at] = stream.before;
        after[name][at] = stream.after;
      }
    }
    json row{{"grad", numbers(grad, kDepthDigits)},
             {"in", numbers(in, kDepthDigits)},
             {"out", numbers(out, kDepthDigits)},
             {"before", json::array()},
             {"after", json::array()}};
    for (const auto& column : before) row["before"].push_back(numbers(column, kDepthDigits));
    for (const auto& column : after) row["after"].push_back(numbers(column, kDepthDigits));
    object["steps"].push_back(snapshot.step);
    object["rows"].push_back(std::move(row));
  }
  return object;
}

json run_object(const RunRecord& run, const StepGrid& grid) {
  json evals = json::array();
  for (const EvalRow& row : run.evals) {
    evals.push_back({{"step", row.step}, {"loss", number(row.loss)}, {"accuracy", number(row.accuracy())}});
  }
  const EvalRow* last = run.last_accuracy();
  const StepColumns& metrics = run.metrics;
  return {{"dir", run.dir},
          {"variant", run.variant},
          {"lr", number(run.lr)},
          {"seed", run.seed < 0 ? json(nullptr) : json(run.seed)},
          {"state", state_text(run.state)},
          {"recorded", run.recorded.has_value()},
          {"scheme", run.scheme},
          {"label", run.label},
          {"message", run.message},
          {"step", run.step},
          {"steps", run.steps},
          {"parameters", run.parameters},
          {"tokens", metrics.tokens.empty() ? json(nullptr) : number(metrics.tokens.back(), 12)},
          {"skipped", metrics.skipped},
          {"seconds", number(run.seconds())},
          {"train_loss", number(run.final_train_loss())},
          {"val_loss", number(run.final_val_loss())},
          {"accuracy", number(run.final_accuracy())},
          {"accuracy_groups", accuracy_groups(last ? last->groups : std::vector<AccuracyGroup>{})},
          {"tokens_per_s", number(run.median_tokens_per_s(), kCurveDigits)},
          {"loss", curve(grid, run, metrics.loss)},
          {"grad_norm", curve(grid, run, metrics.grad_norm)},
          {"lr_curve", curve(grid, run, metrics.lr)},
          {"speed", curve(grid, run, metrics.tokens_per_s)},
          {"evals", std::move(evals)},
          {"depth", depth_profiles(run.snapshots)},
          {"config", run.config_text},
          {"notes", run.notes}};
}

json group_object(const ResultGroup& group) {
  return {{"variant", group.variant},
          {"lr", number(group.lr)},
          {"runs", group.runs},
          {"finished", group.finished},
          {"diverged", group.diverged},
          {"stuck", group.stuck},
          {"partial", group.partial},
          {"val_loss", spread(group.val_loss)},
          {"train_loss", spread(group.train_loss)},
          {"accuracy", spread(group.accuracy)},
          {"tokens_per_s", number(group.tokens_per_s, kCurveDigits)},
          {"accuracy_groups", accuracy_groups(group.accuracy_groups)}};
}

}  // namespace

std::string page_data(const Collection& collection, const std::vector<ResultGroup>& groups) {
  int64_t last_step = 0;
  for (const RunRecord& run : collection.runs) {
    if (!run.metrics.step.empty()) last_step = std::max(last_step, run.metrics.step.back());
  }
  const StepGrid grid(last_step);
  json data{{"sweep", collection.is_sweep},
            {"name", collection.name},
            {"grid", {{"first", json::array()}, {"last", json::array()}}},
            {"runs", json::array()},
            {"groups", json::array()},
            {"differences", json::array()}};
  for (int64_t bucket = 0; bucket < grid.size(); ++bucket) {
    data["grid"]["first"].push_back(grid.first_step(bucket));
    data["grid"]["last"].push_back(grid.last_step(bucket));
  }
  for (const RunRecord& run : collection.runs) data["runs"].push_back(run_object(run, grid));
  for (const ResultGroup& group : groups) data["groups"].push_back(group_object(group));
  if (collection.is_sweep) {
    for (const ConfigDifference& difference : config_differences(collection.runs)) {
      data["differences"].push_back({{"key", difference.key}, {"values", difference.values}});
    }
  }
  return escape_json_for_script(data.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace));
}

}  // namespace siamese::report

#include "siamese/report/step_reader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/report/downsample.h"
#include "siamese/report/json_fields.h"

namespace siamese::report {

namespace {

using nlohmann::json;

SiteRow parse_site(const json& site) {
  SiteRow row;
  row.block = integer_or(site, "block", 0);
  row.kind = text_or(site, "kind");
  row.grad_norm = number_or(site, "grad_norm");
  row.branch_in = number_or(site, "branch_in");
  row.branch_out = number_or(site, "branch_out");
  for (const json& stream : array_or_empty(site, "streams")) {
    if (!stream.is_object()) continue;
    row.streams.push_back({text_or(stream, "name"), number_or(stream, "before"), number_or(stream, "after")});
  }
  return row;
}

ExpertRow parse_experts(const json& block) {
  ExpertRow row{integer_or(block, "block", 0), {}};
  for (const json& load : array_or_empty(block, "load")) {
    row.load.push_back(load.is_number() ? load.get<double>() : kMissing);
  }
  return row;
}

SiteSnapshot parse_snapshot(const json& object) {
  SiteSnapshot snapshot{integer_or(object, "step", 0), {}};
  for (const json& site : array_or_empty(object, "sites")) {
    if (site.is_object()) snapshot.sites.push_back(parse_site(site));
  }
  for (const json& block : array_or_empty(object, "experts")) {
    if (block.is_object()) snapshot.experts.push_back(parse_experts(block));
  }
  return snapshot;
}

// True when there were too many loads to keep.
bool drop_huge(std::vector<ExpertRow>& experts) {
  size_t widest = 0;
  for (const ExpertRow& row : experts) widest = std::max(widest, row.load.size());
  if (widest * experts.size() <= kExpertLimit) return false;
  experts.clear();
  return true;
}

// Keeps the first kStreamLimit names of a run: a page has a line for every name at every site and step, whoever wrote
// them. True when a stream of another name was dropped.
bool drop_more_streams(SiteSnapshot& snapshot, std::set<std::string>& names) {
  bool dropped = false;
  for (SiteRow& site : snapshot.sites) {
    dropped |= std::erase_if(site.streams, [&](const StreamRms& stream) {
                 if (names.size() < kStreamLimit) names.insert(stream.name);
                 return !names.contains(stream.name);
               }) > 0;
  }
  return dropped;
}

// A resumed run writes some steps again: the newer line wins.
void forget_from(int64_t step, RunRecord& run) {
  StepColumns& columns = run.metrics;
  while (!columns.step.empty() && columns.step.back() >= step) {
    columns.step.pop_back();
    for (const StepColumn& column : step_columns()) (columns.*column.values).pop_back();
  }
  while (!run.snapshots.empty() && run.snapshots.back().step >= step) run.snapshots.pop_back();
}

bool was_skipped(const json& object) {
  const auto skipped = object.find("skipped");
  return skipped != object.end() && skipped->is_boolean() && skipped->get<bool>();
}

// Older lines give no reason: then it was a number that is not finite.
bool was_outlier(const json& object) {
  const std::string reason = text_or(object, "skip_reason", "");
  return reason == "loss" || reason == "grad_norm";
}

}  // namespace

void read_metrics(const std::filesystem::path& path, RunRecord& run) {
  StepColumns& columns = run.metrics;
  Thinning thinning(kSnapshotLimit);
  int64_t recorded = 0;
  bool experts_dropped = false, streams_dropped = false;
  std::set<std::string> stream_names;
  std::optional<SiteSnapshot> newest;
  for_each_object(path, run.notes, [&](const json& object) {
    const int64_t step = integer_or(object, "step", 0);
    if (step < 1) return;
    if (!columns.step.empty() && step <= columns.step.back()) forget_from(step, run);
    columns.step.push_back(step);
    for (const StepColumn& column : step_columns()) {
      (columns.*column.values).push_back(number_or(object, column.key));
    }
    if (was_skipped(object)) ++columns.skipped;
    if (was_skipped(object) && was_outlier(object)) ++columns.outliers;
    if (array_or_empty(object, "sites").empty() && array_or_empty(object, "experts").empty()) return;
    const bool wanted = thinning.wants(recorded++);
    newest = parse_snapshot(object);
    experts_dropped |= drop_huge(newest->experts);
    streams_dropped |= drop_more_streams(*newest, stream_names);
    if (!wanted) return;
    run.snapshots.push_back(*newest);
    thinning.taken(run.snapshots);
  });
  // The last profile is the one people look at first (where did it blow up?): it is never thinned away.
  if (newest && (run.snapshots.empty() || run.snapshots.back().step < newest->step)) {
    run.snapshots.push_back(std::move(*newest));
  }
  if (streams_dropped) {
    run.notes.push_back(fmt::format("{}: sites: expected at most {} names of streams, got more; not shown",
                                    path.string(), kStreamLimit));
  }
  if (experts_dropped) {
    run.notes.push_back(
        fmt::format("{}: experts: expected at most {} loads a step, got more; not shown", path.string(), kExpertLimit));
  }
}

}  // namespace siamese::report

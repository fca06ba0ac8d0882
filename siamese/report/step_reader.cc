#include "siamese/report/step_reader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "siamese/report/downsample.h"
#include "siamese/runs/lines.h"

namespace siamese::report {

namespace {

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

double column_value(const runs::StepRecord& record, std::string_view key) {
  if (key == "loss") return record.loss;
  if (key == "grad_norm") return record.grad_norm;
  if (key == "lr") return record.lr;
  if (key == "tokens_per_s") return record.tokens_per_s;
  if (key == "samples_per_s") return record.samples_per_s;
  if (key == "step_ms") return record.step_ms;
  if (key == "tokens") return record.tokens > 0 ? static_cast<double>(record.tokens) : kMissing;
  return runs::number_of(record.extra, std::string(key));
}

// Older lines give no reason: then it was a number that is not finite.
bool was_outlier(const runs::StepRecord& record) {
  return record.skip_reason == "loss" || record.skip_reason == "grad_norm";
}

}  // namespace

void read_metrics(const std::filesystem::path& path, RunRecord& run) {
  StepColumns& columns = run.metrics;
  Thinning thinning(kSnapshotLimit);
  int64_t recorded = 0;
  bool experts_dropped = false, streams_dropped = false;
  std::set<std::string> stream_names;
  std::optional<SiteSnapshot> newest;
  const auto take = [&](std::string_view line, const std::string& where, runs::Notes* notes) {
    runs::StepRecord record = runs::read_step(line, where, notes);
    if (!columns.step.empty() && record.step <= columns.step.back()) forget_from(record.step, run);
    columns.step.push_back(record.step);
    for (const StepColumn& column : step_columns()) {
      (columns.*column.values).push_back(column_value(record, column.key));
    }
    if (record.skipped) ++columns.skipped;
    if (record.skipped && was_outlier(record)) ++columns.outliers;
    if (record.sites.empty() && record.experts.empty()) return;
    const bool wanted = thinning.wants(recorded++);
    newest = SiteSnapshot{record.step, std::move(record.sites), std::move(record.experts)};
    experts_dropped |= drop_huge(newest->experts);
    streams_dropped |= drop_more_streams(*newest, stream_names);
    if (!wanted) return;
    run.snapshots.push_back(*newest);
    thinning.taken(run.snapshots);
  };
  runs::for_each_line(path, take, &run.notes);
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

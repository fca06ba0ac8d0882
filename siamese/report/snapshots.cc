#include "siamese/report/snapshots.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

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

}  // namespace

void Snapshots::take(runs::StepRecord&& record) {
  if (record.sites.empty() && record.experts.empty()) return;
  const bool wanted = thinning_.wants(recorded_++);
  newest_ = SiteSnapshot{record.step, std::move(record.sites), std::move(record.experts)};
  experts_dropped_ |= drop_huge(newest_->experts);
  streams_dropped_ |= drop_more_streams(*newest_, stream_names_);
  if (!wanted) return;
  kept_.push_back(*newest_);
  thinning_.taken(kept_);
}

void Snapshots::forget_from(int64_t step) {
  while (!kept_.empty() && kept_.back().step >= step) kept_.pop_back();
  if (newest_ && newest_->step >= step) newest_.reset();
}

std::vector<SiteSnapshot> Snapshots::list() const {
  std::vector<SiteSnapshot> all = kept_;
  if (newest_ && (all.empty() || all.back().step < newest_->step)) all.push_back(*newest_);
  return all;
}

std::vector<std::string> Snapshots::notes() const {
  std::vector<std::string> said;
  if (streams_dropped_) {
    said.push_back(fmt::format("sites: expected at most {} names of streams, got more; not shown", kStreamLimit));
  }
  if (experts_dropped_) {
    said.push_back(fmt::format("experts: expected at most {} loads a step, got more; not shown", kExpertLimit));
  }
  return said;
}

}  // namespace siamese::report

#include "siamese/report/live_runs.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/live_feed.h"
#include "siamese/report/page_depth.h"

namespace siamese::report {

namespace {

namespace fs = std::filesystem;

constexpr int kStillPolls = 60;  // after so many polls without a change
constexpr uint64_t kSeldom = 5;  // a run is looked at every so many
constexpr size_t kMostProblems = 20;
constexpr std::chrono::seconds kSearchEvery{5};
constexpr int kSearchShare = 100;

bool is_trained_here(const fs::path& folder) {
  return !is_there(folder / io::kTrainerFile) &&
         (is_there(folder / io::kRunFile) || is_there(folder / io::kMetricsFile));
}

std::string without_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).string();
}

// A link to a folder that it lies in: what is below has been found, under a shorter name.
bool leads_back(const fs::path& entry) {
  std::error_code error;
  if (!fs::is_symlink(entry, error)) return false;
  const fs::path target = fs::canonical(entry, error), from = fs::weakly_canonical(entry.parent_path(), error);
  return !error && std::mismatch(target.begin(), target.end(), from.begin(), from.end()).first == target.end();
}

}  // namespace

LiveRuns::LiveRuns(std::vector<fs::path> sources) : sources_(std::move(sources)) {
  if (sources_.empty()) throw UsageError("watch: expected a run or a folder of runs, got none");
  for (const fs::path& source : sources_) {
    if (!is_folder(source)) {
      throw DataError(source.string() + ": expected a run or a folder of runs, " +
                      (is_there(source) ? "got a file" : "there is nothing"));
    }
    if (is_there(source / io::kTrainerFile)) {
      throw DataError(source.string() + ": expected a run or a folder of runs, got a checkpoint; name its run");
    }
  }
}

std::string LiveRuns::title() const {
  return sources_.size() == 1 ? without_slash(sources_.front()) : fmt::format("{} folders", sources_.size());
}

size_t LiveRuns::size() const {
  const std::lock_guard lock(mutex_);
  return runs_.size();
}

void LiveRuns::note(const std::string& problem) {
  if (problems_.size() < kMostProblems && std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
    problems_.push_back(problem);
  }
}

void LiveRuns::add(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const std::string place = fs::weakly_canonical(folder, error).string();
  const std::lock_guard lock(mutex_);
  if (error || known_.contains(place)) return;
  if (runs_.size() >= kMostRuns) return note(fmt::format("more than {} runs: not all are shown", kMostRuns));
  known_[place] = ++last_id_;
  runs_[last_id_].run = std::make_unique<LiveRun>(folder, name);
}

void LiveRuns::search(const fs::path& folder, const std::string& name, int depth, size_t& budget) {
  if (budget == 0) return;
  --budget;
  try {
    if (is_there(folder / io::kTrainerFile)) return;  // a checkpoint
    if (is_trained_here(folder)) return add(folder, name);
    if (depth == 0) return;
    for (const fs::path& entry : folder_entries(folder)) {
      const std::string last = entry.filename().string();
      std::error_code ignored;
      if (last.starts_with(".") || !fs::is_directory(entry, ignored) || leads_back(entry)) continue;
      search(entry, name.empty() ? last : name + "/" + last, depth - 1, budget);
    }
  } catch (const Error& error) {  // may not be entered, or gone while it was looked at
    const std::lock_guard lock(mutex_);
    if (is_taken(folder)) note(error.what());
  }
}

std::string LiveRuns::shown_name(const fs::path& source) const {
  return sources_.size() == 1 && !is_trained_here(source) ? "" : without_slash(source);
}

void LiveRuns::search() {
  const auto begin = Clock::now();
  size_t budget = kMostFolders;
  for (const fs::path& source : sources_) {
    try {
      if (is_folder(source)) search(source, shown_name(source), kDepth, budget);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      note(error.what());
    }
  }
  if (budget == 0) {
    const std::lock_guard lock(mutex_);
    note(fmt::format("more than {} folders: not all were looked at", kMostFolders));
  }
  const auto end = Clock::now();
  next_search_ = end + std::max<Clock::duration>(kSearchEvery, kSearchShare * (end - begin));
}

LiveRuns::Progress LiveRuns::poll() {
  Progress progress;
  ++polls_;
  const bool searched = Clock::now() >= next_search_;
  if (searched) search();
  std::vector<uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : runs_) {
      const bool due = entry.still < kStillPolls || (polls_ + id) % kSeldom == 0 || entry.run->more();
      if (due) ids.push_back(id);
    }
  }
  for (const uint64_t id : ids) {
    const std::lock_guard lock(mutex_);
    const auto found = runs_.find(id);
    Entry& entry = found->second;
    const bool changed = entry.run->poll();
    progress.changed = progress.changed || changed;
    progress.more = progress.more || entry.run->more();
    entry.still = changed ? 0 : entry.still + 1;
    if (!entry.run->gone()) continue;
    std::erase_if(known_, [id](const auto& known) { return known.second == id; });
    runs_.erase(found);
    progress.changed = true;
  }
  const std::lock_guard lock(mutex_);
  progress.changed = progress.changed || searched || reading_ != progress.more;
  reading_ = progress.more;
  return progress;
}

std::optional<fs::path> LiveRuns::folder(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  return found == runs_.end() ? std::nullopt : std::optional(found->second.run->folder());
}

std::optional<std::string> LiveRuns::depth(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end()) return std::nullopt;
  return json_message({{"id", id},
                       {"recorded", found->second.run->recorded()},
                       {"depth", depth_profiles(found->second.run->snapshots())}});
}

std::string LiveRuns::news(Seen& seen) const {
  const std::lock_guard lock(mutex_);
  nlohmann::json message = nlohmann::json::object();
  for (auto entry = seen.runs.begin(); entry != seen.runs.end();) {
    const bool gone = !runs_.contains(entry->first);
    if (gone) message["gone"].push_back(entry->first);
    entry = gone ? seen.runs.erase(entry) : std::next(entry);
  }
  size_t told = 0;
  for (const auto& [id, entry] : runs_) {
    SeenRun& of_run = seen.runs[id];
    if (!of_run.fresh && of_run.revision == entry.run->revision()) continue;
    if (told++ == kRunsPerMessage) {
      message["more"] = true;  // in a message that follows at once
      break;
    }
    message["runs"].push_back(run_news(id, *entry.run, of_run));
  }
  const std::string problems = nlohmann::json(problems_).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (problems != seen.problems || !seen.begun) message["problems"] = problems_;
  if (reading_ != seen.reading || !seen.begun) message["reading"] = reading_;
  seen.problems = problems;
  seen.reading = reading_;
  if (message.empty()) return "";
  if (!std::exchange(seen.begun, true)) message["title"] = title();
  return json_message(message);
}

}  // namespace siamese::report

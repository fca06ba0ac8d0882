#include "siamese/report/sources.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "siamese/base/path_kind.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/config_difference.h"

namespace siamese::report {

namespace {

namespace fs = std::filesystem;

bool is_checkpoint(const fs::path& folder) {
  return is_there(folder / io::kTrainerFile) || is_there(folder / io::kModelFile) ||
         is_there(folder / io::kModelIndexFile);
}

std::string shown(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).string();
}

// Columns and rows after `step` are dropped.
void cut(RunRecord& run, int64_t step) {
  auto& steps = run.metrics.step;
  const auto kept = static_cast<size_t>(std::upper_bound(steps.begin(), steps.end(), step) - steps.begin());
  steps.resize(kept);
  for (const StepColumn& column : step_columns()) {
    auto& values = run.metrics.*column.values;
    values.resize(std::min(values.size(), kept));
  }
  std::erase_if(run.snapshots, [&](const SiteSnapshot& snapshot) { return snapshot.step > step; });
  std::erase_if(run.evals, [&](const EvalRow& row) { return row.step > step; });
  run.step = step;
  if (step == run.steps && run.state == RunState::finished) return;
  run.state = RunState::stopped;
  run.message.clear();
}

RunRecord read_checkpoint(const fs::path& folder) {
  const fs::path absolute = fs::absolute(folder / "").lexically_normal().parent_path();
  const auto step = io::checkpoint_step(absolute.filename().string());
  if (step && is_there(absolute.parent_path() / io::kRunFile)) {
    RunRecord run = read_run(absolute.parent_path());
    cut(run, *step);
    run.variant += fmt::format(", step {}", *step);
    return run;
  }
  RunRecord alone = read_run(folder);  // its config
  alone.state = RunState::unknown;
  for (const auto& [key, text] : alone.config) {
    if (key == "model.residual") alone.variant = alone.scheme = text;
  }
  alone.notes.push_back(shown(folder) + ": a checkpoint outside its run: its config is all that is known of it");
  return alone;
}

// The reader's, of one source. Names of runs are as the user wrote them.
std::vector<RunRecord> read_source(const fs::path& source) {
  if (!is_there(source / io::kSweepFile) && is_checkpoint(source)) {
    RunRecord run = read_checkpoint(source);
    run.dir = shown(source);
    return {run};
  }
  Collection collection = read_collection(source);
  for (RunRecord& run : collection.runs) {
    run.dir = collection.is_sweep ? shown(source / run.dir) : shown(source);
  }
  return collection.runs;
}

// What two runs of one setting may differ in.
bool says_nothing(const std::string& key) {
  static constexpr std::array kKeys = {"train.seed",         "train.max_hours",  "train.keep_last",
                                       "train.keep_every",   "train.eval_every", "train.checkpoint_every",
                                       "train.record_every", "train.tensorboard"};
  return (key.starts_with("engine.") && key != "engine.precision") ||
         std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

using Members = std::vector<RunRecord*>;

std::vector<Members> settings(std::vector<RunRecord>& runs) {
  std::map<std::tuple<std::string, std::string, std::string>, Members> by_name;
  for (RunRecord& run : runs) by_name[{run.family, run.variant, fmt::format("{}", run.lr)}].push_back(&run);
  std::vector<Members> lists;
  for (auto& entry : by_name) lists.push_back(std::move(entry.second));
  return lists;
}

// By the keys in which they differ, if these are few and known.
void name_by_config(const Members& members) {
  constexpr size_t kMostKeys = 3;
  std::vector<RunRecord> copies;
  for (const RunRecord* run : members) {
    copies.emplace_back();
    copies.back().config = run->config;
    copies.back().recorded = run->recorded;
    if (run->config.empty()) return;
  }
  auto differences = config_differences(copies);
  std::erase_if(differences, [](const ConfigDifference& difference) { return says_nothing(difference.key); });
  if (differences.size() > kMostKeys) {
    for (RunRecord* run : members) run->variant += " (" + run->dir + ")";
    return;
  }
  for (const ConfigDifference& difference : differences) {
    for (size_t i = 0; i < members.size(); ++i) {
      const std::string& value = difference.values[i];
      members[i]->variant += ", " + last_part(difference.key) + "=" + (value.empty() ? "?" : value);
    }
  }
}

// The same folder, up to the same step: named twice it is no further seed. A copy elsewhere is told apart by its name.
using Identity = std::tuple<std::string, std::string, int64_t>;
Identity identity_of(const RunRecord& run) {
  std::error_code error;
  const std::string folder = run.folder.empty() ? run.dir : fs::weakly_canonical(run.folder, error).string();
  return {folder, run.variant, run.step};
}

}  // namespace

void tell_apart(std::vector<RunRecord>& runs) {
  for (const Members& members : settings(runs)) {
    if (members.size() > 1) name_by_config(members);
  }
  for (const Members& members : settings(runs)) {
    std::set<int64_t> seeds;
    for (const RunRecord* run : members) seeds.insert(run->seed);
    if (seeds.size() == members.size()) continue;  // seeds of one setting, or alone
    for (RunRecord* run : members) run->variant += " (" + run->dir + ")";
  }
}

Collection read_sources(const std::vector<fs::path>& sources) {
  const bool alone =
      sources.size() == 1 && (is_there(sources.front() / io::kSweepFile) || !is_checkpoint(sources.front()));
  if (alone) return read_collection(sources.front());
  Collection all;
  all.is_sweep = true;  // drawn like one: a table, a legend, what differs
  all.is_comparison = true;
  std::set<Identity> known;
  for (const fs::path& source : sources) {
    for (RunRecord& run : read_source(source)) {
      if (known.insert(identity_of(run)).second) all.runs.push_back(std::move(run));
    }
  }
  all.name = fmt::format("{} run{} compared", all.runs.size(), all.runs.size() == 1 ? "" : "s");
  tell_apart(all.runs);
  return all;
}

}  // namespace siamese::report

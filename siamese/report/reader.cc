#include "siamese/report/reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <system_error>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/value.h"
#include "siamese/config/yaml.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/eval_reader.h"
#include "siamese/report/recorded.h"
#include "siamese/report/step_reader.h"
#include "siamese/runs/sweep_file.h"

namespace siamese::report {

namespace {

namespace fs = std::filesystem;

bool is_run_folder(const fs::path& folder) {
  // A checkpoint has a config.yaml too, but its curves are its run's.
  if (is_there(folder / io::kTrainerFile)) return false;
  return is_there(folder / io::kRunFile) || is_there(folder / io::kMetricsFile) || is_there(folder / io::kConfigFile);
}

std::string folder_name(const fs::path& folder) {
  std::error_code ignored;
  const fs::path absolute = fs::weakly_canonical(folder, ignored);
  return (absolute.filename().empty() ? folder : absolute.filename()).string();
}

bool has_ended(const RunRecord& run) { return run.state == RunState::finished || run.state == RunState::diverged; }

// The folder of a run that ended says more than a record line; without one the line is all there is.
RunRecord read_run_of_sweep(const fs::path& sweep, const std::string& dir,
                            const std::map<std::string, RunRecord>& recorded) {
  RunRecord run = read_run(sweep / dir);
  const auto line = recorded.find(dir);
  if (line == recorded.end() || (has_ended(run) && run.notes.empty())) return run;
  const char* const here = has_ended(run)                       ? "in the run folder here something is damaged"
                           : run.state != RunState::not_started ? "the run folder here has not ended"
                                                                : "no run folder here";
  std::vector<std::string> notes = has_ended(run) ? std::move(run.notes) : std::vector<std::string>{};
  run = line->second;
  run.damaged = !notes.empty();
  notes.insert(notes.begin(), std::string("from the record; ") + here);
  run.notes = std::move(notes);
  return run;
}

// A run that has not started has no config and so no family of its own. It is taken for that of its variant, else for
// that of all the others; where those differ nobody knows yet.
void guess_families(std::vector<RunRecord>& runs) {
  std::set<std::string> families;
  std::map<std::string, std::string> of_variant;
  for (const RunRecord& run : runs) {
    if (run.config.empty()) continue;
    families.insert(run.family);
    of_variant.emplace(run.variant, run.family);
  }
  for (RunRecord& run : runs) {
    if (!run.config.empty() || families.empty()) continue;
    const auto like = of_variant.find(run.variant);
    run.family = like != of_variant.end() ? like->second : families.size() == 1 ? *families.begin() : kFamilyNotKnown;
  }
}

Collection read_sweep(const fs::path& folder) {
  const fs::path path = folder / io::kSweepFile;
  const runs::SweepFile file = runs::read_sweep_file(io::read_file(path), path.string());
  const auto recorded = read_recorded(folder / io::kRecordedFile);
  Collection sweep{true, file.name.empty() ? folder_name(folder) : file.name, {}};
  for (const runs::SweepEntry& entry : file.runs) {
    RunRecord run = read_run_of_sweep(folder, entry.dir, recorded);
    run.dir = entry.dir;
    if (!entry.variant.empty()) run.variant = entry.variant;
    if (std::isfinite(entry.lr)) run.lr = entry.lr;
    if (entry.seed) run.seed = static_cast<int64_t>(*entry.seed);
    sweep.runs.push_back(std::move(run));
  }
  guess_families(sweep.runs);
  return sweep;
}

// A file that the system does not let us read is said on the page, and what else there is of the run is shown.
void read_or_note(void (*read)(const fs::path&, RunRecord&), const fs::path& file, RunRecord& run) {
  try {
    read(file, run);
  } catch (const Error& error) {
    run.notes.emplace_back(error.what());
  }
}

}  // namespace

void read_info(const fs::path& folder, RunRecord& run) {
  run.state = RunState::unknown;
  try {
    const auto info = runs::read_run_file(folder, &run.notes);
    if (!info) {
      if (run.metrics.step.empty()) run.state = RunState::not_started;
      return;
    }
    run.state = state_of(info->status);
    run.scheme = info->scheme;
    run.label = info->label;
    run.message = info->message;
    run.step = info->step;
    run.steps = info->steps;
    run.parameters = info->parameters;
    if (info->seed) run.seed = static_cast<int64_t>(*info->seed);
    run.lr = info->lr;
    run.step_flops = info->step_flops;
    run.data = info->data;
    run.stretches = runs::joined(info->stretches);
    run.builds = runs::builds_of(info->stretches);
  } catch (const Error& error) {
    run.notes.push_back(error.what());
  }
}

void read_config(const fs::path& path, RunRecord& run) {
  try {
    if (!is_there(path)) return;
    run.config_text = io::read_file(path);
    run.config = config::flatten(config::parse_yaml(run.config_text, path.string()));
    run.family = family_of(run.config);
  } catch (const Error& error) {
    run.notes.push_back(error.what());
  }
}

RunRecord read_run(const fs::path& folder) {
  RunRecord run;
  run.folder = folder.string();
  read_or_note(read_metrics, folder / io::kMetricsFile, run);
  read_or_note(read_evals, folder / io::kEvalFile, run);
  read_info(folder, run);
  read_config(folder / io::kConfigFile, run);
  run.damaged = !run.notes.empty();
  run.dir = folder_name(folder);
  if (!run.metrics.step.empty()) run.step = std::max(run.step, run.metrics.step.back());
  run.variant = !run.label.empty() ? run.label : !run.scheme.empty() ? run.scheme : run.dir;
  return run;
}

Collection read_collection(const fs::path& run_or_sweep) {
  if (is_there(run_or_sweep / io::kSweepFile)) return read_sweep(run_or_sweep);
  if (!is_run_folder(run_or_sweep)) {
    throw DataError(run_or_sweep.string() +
                    ": expected a run folder (run.json, metrics.jsonl) or a sweep folder (sweep.json), found neither");
  }
  Collection alone{false, folder_name(run_or_sweep), {}};
  alone.runs.push_back(read_run(run_or_sweep));
  return alone;
}

}  // namespace siamese::report

#include "siamese/report/reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/config/value.h"
#include "siamese/config/yaml.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/downsample.h"
#include "siamese/report/json_fields.h"
#include "siamese/report/recorded.h"

namespace siamese::report {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The objects of a JSON Lines file; none, and a note, when it is missing or damaged.
template <class Use>
void for_each_object(const fs::path& path, std::vector<std::string>& notes, Use use) {
  if (!is_there(path)) return;
  std::vector<std::string> lines;
  try {
    lines = io::read_json_lines(path);
  } catch (const Error& error) {
    notes.push_back(error.what());
    return;
  }
  for (const std::string& line : lines) {
    const json object = json::parse(line, nullptr, false);
    if (object.is_object()) use(object);
  }
}

SiteSnapshot parse_snapshot(const json& object) {
  SiteSnapshot snapshot{integer_or(object, "step", 0), {}};
  for (const json& site : array_or_empty(object, "sites")) {
    if (!site.is_object()) continue;
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
    snapshot.sites.push_back(std::move(row));
  }
  return snapshot;
}

// A resumed run writes some steps again: the newer line wins.
void forget_from(int64_t step, RunRecord& run) {
  StepColumns& columns = run.metrics;
  while (!columns.step.empty() && columns.step.back() >= step) {
    columns.step.pop_back();
    for (auto* column :
         {&columns.loss, &columns.grad_norm, &columns.lr, &columns.tokens_per_s, &columns.step_ms, &columns.tokens}) {
      column->pop_back();
    }
  }
  while (!run.snapshots.empty() && run.snapshots.back().step >= step) run.snapshots.pop_back();
}

void read_metrics(const fs::path& path, RunRecord& run) {
  StepColumns& columns = run.metrics;
  Thinning thinning(kSnapshotLimit);
  int64_t recorded = 0;
  std::optional<SiteSnapshot> newest;
  for_each_object(path, run.notes, [&](const json& object) {
    const int64_t step = integer_or(object, "step", 0);
    if (step < 1) return;
    if (!columns.step.empty() && step <= columns.step.back()) forget_from(step, run);
    columns.step.push_back(step);
    columns.loss.push_back(number_or(object, "loss"));
    columns.grad_norm.push_back(number_or(object, "grad_norm"));
    columns.lr.push_back(number_or(object, "lr"));
    columns.tokens_per_s.push_back(number_or(object, "tokens_per_s"));
    columns.step_ms.push_back(number_or(object, "step_ms"));
    columns.tokens.push_back(number_or(object, "tokens"));
    const auto skipped = object.find("skipped");
    if (skipped != object.end() && skipped->is_boolean() && skipped->get<bool>()) ++columns.skipped;
    if (array_or_empty(object, "sites").empty()) return;
    const bool wanted = thinning.wants(recorded++);
    newest = parse_snapshot(object);
    if (!wanted) return;
    run.snapshots.push_back(*newest);
    thinning.taken(run.snapshots);
  });
  // The last profile is the one people look at first (where did it blow up?): it is never thinned away.
  if (newest && (run.snapshots.empty() || run.snapshots.back().step < newest->step)) {
    run.snapshots.push_back(std::move(*newest));
  }
}

void read_evals(const fs::path& path, RunRecord& run) {
  for_each_object(path, run.notes, [&](const json& object) {
    EvalRow row;
    row.step = integer_or(object, "step", 0);
    row.loss = number_or(object, "loss");
    read_accuracy(object, row);
    while (!run.evals.empty() && run.evals.back().step >= row.step) run.evals.pop_back();
    run.evals.push_back(std::move(row));
  });
}

void read_run_file(const fs::path& path, RunRecord& run) {
  if (!is_there(path)) {
    run.state = run.metrics.step.empty() ? RunState::not_started : RunState::unknown;
    return;
  }
  run.state = RunState::unknown;
  json object;
  try {
    object = json::parse(io::read_file(path), nullptr, false);
  } catch (const Error& error) {
    run.notes.push_back(error.what());
    return;
  }
  if (!object.is_object()) {
    run.notes.push_back(path.string() + ": expected one JSON object");
    return;
  }
  run.state = state_from_text(text_or(object, "status"));
  run.scheme = text_or(object, "scheme");
  run.label = text_or(object, "label");
  run.message = text_or(object, "message");
  run.step = integer_or(object, "step", 0);
  run.steps = integer_or(object, "steps", 0);
  run.parameters = integer_or(object, "parameters", 0);
  run.seed = integer_or(object, "seed", -1);
  run.lr = number_or(object, "lr");
}

void read_config(const fs::path& path, RunRecord& run) {
  if (!is_there(path)) return;
  try {
    run.config_text = io::read_file(path);
    run.config = config::flatten(config::parse_yaml(run.config_text, path.string()));
  } catch (const Error& error) {
    run.notes.push_back(error.what());
  }
}

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
  if (has_ended(run) || line == recorded.end()) return run;
  const bool begun = run.state != RunState::not_started;
  run = line->second;
  run.notes = {begun ? "from the record; the run folder here has not ended" : "from the record; no run folder here"};
  return run;
}

Collection read_sweep(const fs::path& folder) {
  const fs::path path = folder / io::kSweepFile;
  const json object = json::parse(io::read_file(path), nullptr, false);
  if (!object.is_object() || !object.contains("runs") || !object["runs"].is_array()) {
    throw DataError(path.string() + ": expected a JSON object with a list 'runs'");
  }
  const auto recorded = read_recorded(folder / io::kRecordedFile);
  Collection sweep{true, text_or(object, "name", folder_name(folder)), {}};
  for (const json& entry : object["runs"]) {
    if (!entry.is_object() || text_or(entry, "dir").empty()) {
      throw DataError(path.string() + ": every entry of 'runs' needs a folder name 'dir', got " + entry.dump());
    }
    const std::string dir = text_or(entry, "dir");
    RunRecord run = read_run_of_sweep(folder, dir, recorded);
    run.dir = dir;
    run.variant = text_or(entry, "variant", run.variant);
    run.lr = number_or(entry, "lr", run.lr);
    run.seed = integer_or(entry, "seed", run.seed);
    sweep.runs.push_back(std::move(run));
  }
  return sweep;
}

}  // namespace

RunRecord read_run(const fs::path& folder) {
  RunRecord run;
  read_metrics(folder / io::kMetricsFile, run);
  read_evals(folder / io::kEvalFile, run);
  read_run_file(folder / io::kRunFile, run);
  read_config(folder / io::kConfigFile, run);
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

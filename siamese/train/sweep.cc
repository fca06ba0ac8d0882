#include "siamese/train/sweep.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/fields.h"
#include "siamese/io/aside.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/result_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/runs/sweep_file.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/failure_text.h"
#include "siamese/train/retention.h"
#include "siamese/train/sweep_workers.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kLeftToThat = "another process trains it: left to that";

bool has_ended(std::optional<RunStatus> status) {
  return status == RunStatus::finished || status == RunStatus::diverged;
}

bool has_ended(const RunStanding& run) {
  return run.standing == Standing::recorded || run.standing == Standing::ended_here;
}

// "finished, loss 0.8712".
std::string result_text(const runs::RunSummary& summary) {
  const double loss = std::isfinite(summary.val_loss) ? summary.val_loss : summary.train_loss;
  return fmt::format("{}, loss {}", enum_text(summary.status), std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "-");
}

// What is no part of a run's identity and may be another when it goes on: how long, how many checkpoints, how many
// threads.
void take_limits(const RunConfig& from, RunConfig& to) {
  to.train.max_hours = from.train.max_hours;
  to.train.keep_last = from.train.keep_last;
  to.train.keep_every = from.train.keep_every;
  to.engine.threads = from.engine.threads;
}

// Whether another process writes there. Nobody's lock is taken for longer than it takes to ask.
bool is_held(const fs::path& dir) {
  if (!is_folder(dir)) return false;
  try {
    const io::DirectoryLock free(dir);
    return false;
  } catch (const UsageError&) {
    return true;
  }
}

// Where both are known: what the run was trained on, and what its config names now.
bool has_other_data(const PlannedRun& run, const fs::path& dir, DataKeys& data) {
  runs::Notes notes;
  const auto info = runs::read_run_file(dir, &notes);
  if (!info || info->data.empty()) return false;
  const runs::DataKey& now = data.of(run.config);
  return !now.empty() && now != info->data;
}

runs::RecordLine named_as(runs::RecordLine line, const PlannedRun& run) {
  line.dir = run.dir;
  line.variant = run.variant;
  return line;
}

}  // namespace

Sweep::Sweep(SweepPlan plan, SweepOptions options) : plan_(std::move(plan)), options_(std::move(options)) {
  if (options_.record.empty()) return;
  for (const auto name : {io::kRecordedFile, io::kSweepFile, io::kReportFile}) {
    if (!io::same_place(options_.record, options_.out / name)) continue;
    throw UsageError("--record: " + options_.record.string() + " is what the sweep itself writes into " +
                     options_.out.string() + "; choose another file");
  }
  using Lines = SweepRecord::Lines;
  record_.emplace(options_.record, options_.fresh ? Lines::of_this_build : Lines::all);
}

void Sweep::check() {
  check_folder();
  check_data();
}

void Sweep::check_folder() {
  if (run_status(options_.out)) {
    throw UsageError(options_.out.string() + ": is a run, not the folder of a sweep; choose another --out");
  }
  check_files_are_ours();
  for (const auto& run : plan_.runs) {
    if (is_another_run(run)) {
      throw UsageError((options_.out / run.dir).string() +
                       ": was run with another config than the sweep now asks for; choose another --out or remove it");
    }
    if (!options_.fresh && has_ended(run_status(options_.out / run.dir)) && !find(run) &&
        has_other_data(run, options_.out / run.dir, data_)) {
      throw UsageError((options_.out / run.dir).string() +
                       ": was trained on other data than its config names now; choose another --out, or --fresh " +
                       "trains it again");
    }
  }
}

// sweep.json comes first: files of these names in a folder without one are somebody else's.
void Sweep::check_files_are_ours() const {
  const fs::path plan = options_.out / io::kSweepFile;
  if (is_taken(plan)) {
    if (!runs::is_sweep_file(plan)) throw UsageError(plan.string() + ": not of a sweep; choose another --out");
    return;
  }
  for (const auto name : {io::kRecordedFile, io::kReportFile}) {
    if (is_taken(options_.out / name)) {
      throw UsageError((options_.out / name).string() + ": exists already, in a folder that is no sweep's (no " +
                       std::string(io::kSweepFile) + "); choose another --out");
    }
  }
}

void Sweep::check_data() {
  const auto standing = standings();
  try {
    open_data(standing);
  } catch (const DataError& error) {
    const bool some = std::any_of(standing.begin(), standing.end(), [](const auto& run) { return has_ended(run); });
    if (!some) throw;
    throw DataError(std::string(error.what()) + "; --recorded shows what is recorded, without data");
  }
}

// Each set of data once: most sweeps have one.
void Sweep::open_data(const std::vector<RunStanding>& standing) {
  std::set<std::string> seen;
  for (size_t i = 0; i < plan_.runs.size(); ++i) {
    const RunConfig& config = plan_.runs[i].config;
    if (has_ended(standing[i])) continue;
    const data::SampleShape shape = sample_shape(config.model);
    std::string key =
        fmt::format("{} {} {} {} {}\n", shape.context, shape.vocab, shape.image, shape.channels, shape.classes);
    for (const auto& [name, text] : config::flatten(config::print(config.data))) key += name + "=" + text + "\n";
    if (!seen.insert(key).second) continue;
    for (const auto split : {data::Split::train, data::Split::test}) {
      data::open_batches(config.data, split, shape, config.train.seed);
    }
  }
}

std::vector<RunStanding> Sweep::standings() {
  std::vector<RunStanding> standings;
  for (const auto& run : plan_.runs) {
    const auto status = run_status(options_.out / run.dir);
    if (const auto line = find(run)) {
      standings.push_back({Standing::recorded, "recorded: " + result_text(line->summary)});
    } else if (has_ended(status) && !has_ended_here(run)) {
      standings.push_back(
          {Standing::to_do, fmt::format("to do: {} here, by another build or on other data", enum_text(*status))});
    } else if (has_ended(status)) {
      standings.push_back({Standing::ended_here, fmt::format("{} here", enum_text(*status))});
    } else if (status && !counts(run)) {
      standings.push_back({Standing::to_do, "to do: begun here, by another build or on other data"});
    } else if (status) {
      standings.push_back({Standing::begun_here, "to do: begun here"});
    } else {
      standings.push_back({Standing::to_do, "to do"});
    }
  }
  return standings;
}

SweepEstimate Sweep::estimate(MeasureSteps measure) {
  std::vector<RunToDo> to_do;
  std::vector<runs::RecordLine> ended = record_ ? record_->lines() : std::vector<runs::RecordLine>{};
  const auto standing = standings();
  for (size_t i = 0; i < plan_.runs.size(); ++i) {
    const PlannedRun& run = plan_.runs[i];
    const fs::path dir = options_.out / run.dir;
    if (standing[i].standing == Standing::ended_here) ended.push_back(record_line(plan_.name, run, dir));
    if (standing[i].standing == Standing::to_do) to_do.push_back({&run, 0});
    if (standing[i].standing == Standing::begun_here) {
      const auto latest = io::read_latest(dir);
      to_do.push_back({&run, latest ? io::checkpoint_step(*latest).value_or(0) : 0});
    }
  }
  return estimate_sweep(to_do, ended, options_.jobs, measure);
}

RunResult Sweep::train(const SweepHooks& hooks) {
  if (options_.jobs > 1 && !hooks.worker) {
    throw UsageError("jobs: expected 1 where no command is known that trains a run, got " +
                     std::to_string(options_.jobs));
  }
  failures_.clear();
  io::make_directory(options_.out);
  if (record_) record_->check_writable();
  write_known();
  say_standing(hooks);
  for (const auto& run : plan_.runs) tidy_ended(run, hooks);
  const RunResult result = options_.jobs > 1 ? SweepWorkers(*this, hooks).train() : train_in_turn(hooks);
  if (result.status != RunStatus::stopped && !failures_.empty()) throw_failures();
  return result;
}

void Sweep::write_known() {
  io::make_directory(options_.out);
  io::write_file_atomic(options_.out / io::kSweepFile, to_json(plan_));
  write_recorded();
}

RunResult Sweep::train_in_turn(const SweepHooks& hooks) {
  for (size_t turn = 0; turn < plan_.runs.size(); ++turn) {
    const size_t i = (options_.first + turn) % plan_.runs.size();
    const PlannedRun& run = plan_.runs[i];
    const auto why = left_as_it_is(run);
    if (why && said_.contains(run.dir)) continue;
    if (hooks.say) hooks.say(fmt::format("[{}/{}] {}", i + 1, plan_.runs.size(), run.dir));
    if (why) {
      if (hooks.say) hooks.say(*why);
      continue;
    }
    if (is_held(options_.out / run.dir)) {
      if (hooks.say) hooks.say(std::string(kLeftToThat));
      continue;
    }
    try {
      const RunResult result = train_planned(run, options_.out / run.dir, hooks.run, options_.fresh);
      if (result.status == RunStatus::stopped) return result;
    } catch (const Error& error) {
      note_failure(run, error.code(), error.what(), hooks);
      continue;
    } catch (const std::exception& error) {
      note_failure(run, Exit::failure, failure_text(error), hooks);
      continue;
    }
    note_end(run);
    if (hooks.run_ended) hooks.run_ended();
  }
  return {RunStatus::finished, 0};
}

// "72 runs: 70 recorded, 2 to train"; nothing where all are to train.
void Sweep::say_standing(const SweepHooks& hooks) {
  said_.clear();
  size_t recorded = 0;
  const auto standing = standings();
  for (size_t i = 0; i < standing.size(); ++i) {
    if (has_ended(standing[i])) said_.insert(plan_.runs[i].dir);
    recorded += standing[i].standing == Standing::recorded ? 1 : 0;
  }
  if (said_.empty() || !hooks.say) return;
  const size_t here = said_.size() - recorded;
  const size_t to_do = standing.size() - said_.size();
  std::vector<std::string> parts;
  if (recorded > 0) parts.push_back(fmt::format("{} recorded", recorded));
  if (here > 0) parts.push_back(fmt::format("{} ended here", here));
  parts.push_back(to_do > 0 ? fmt::format("{} to train", to_do) : "nothing to train");
  hooks.say(fmt::format("{} runs: {}", standing.size(), join(parts)));
}

// Nobody resumes a run that has ended: what its process could not remove, this one removes.
void Sweep::tidy_ended(const PlannedRun& run, const SweepHooks& hooks) const {
  const fs::path dir = options_.out / run.dir;
  if (!has_ended(run_status(dir))) return;
  try {
    const io::DirectoryLock lock(dir);
    io::remove_leftovers(dir);
    const TrainConfig own = read_config_file((dir / io::kConfigFile).string()).train;  // not what is asked for today
    remove_old_checkpoints(dir, own.keep_last, own.keep_every);
  } catch (const Error& error) {
    if (hooks.say) hooks.say(run.dir + ": what is left over stays: " + error.what());
  }
}

std::optional<runs::RecordLine> Sweep::find(const PlannedRun& run) {
  return record_ ? record_->find(run.config) : std::nullopt;
}

bool Sweep::counts(const PlannedRun& run) {
  const fs::path dir = options_.out / run.dir;
  return !options_.fresh || (is_of_this_build(dir) && !has_other_data(run, dir, data_));
}

bool Sweep::has_ended_here(const PlannedRun& run) {
  return has_ended(run_status(options_.out / run.dir)) && counts(run);
}

std::optional<std::string> Sweep::left_as_it_is(const PlannedRun& run) {
  if (const auto line = find(run)) return "recorded meanwhile: " + result_text(line->summary) + ", left as it is";
  if (!has_ended_here(run)) return std::nullopt;
  note_end(run);
  return fmt::format("{} meanwhile, left as it is", enum_text(*run_status(options_.out / run.dir)));
}

// A run that is not trained again may have been run with other engine.* keys: they do not change its result. One that
// would be continued goes on with its own config, so that has to be the one asked for, up to its limits.
bool Sweep::is_another_run(const PlannedRun& run) {
  const fs::path dir = options_.out / run.dir;
  const auto status = run_status(dir);
  const RunConfig wanted = kept_config(run.config);
  if (!status || io::read_file(dir / io::kConfigFile) == config_text(wanted)) return false;
  RunConfig there = read_config_file((dir / io::kConfigFile).string());
  if (has_ended(status) || find(run)) return result_config(there) != result_config(wanted);
  take_limits(wanted, there);
  return config_text(there) != config_text(wanted);
}

void Sweep::note_end(const PlannedRun& run) {
  if (!record_) return;
  record_->add(record_line(plan_.name, run, options_.out / run.dir));
  if (const auto line = find(run)) append_recorded(run, *line);  // perhaps not ours: whoever came first is believed
}

std::string Sweep::end_text(const PlannedRun& run) const {
  try {
    return result_text(runs::summarise_run(options_.out / run.dir));
  } catch (const DataError& error) {  // somebody took its files meanwhile
    return error.what();
  }
}

// The lines of the record about runs of this plan, under the names they have in it: the report reads them. Another
// sweep may share the folder: one at a time, each with all that the record holds by then.
void Sweep::write_recorded() {
  const io::DirectoryLock one_at_a_time(options_.out, io::DirectoryLock::WhenHeld::wait);
  std::string text;
  for (const auto& run : plan_.runs) {
    if (const auto line = find(run)) text += runs::to_line(named_as(*line, run)) + "\n";
  }
  const fs::path path = options_.out / io::kRecordedFile;
  if (!text.empty()) return io::write_file_atomic(path, text);
  std::error_code none;
  fs::remove(path, none);  // of an earlier command: no longer true
}

void Sweep::append_recorded(const PlannedRun& run, const runs::RecordLine& line) const {
  const io::DirectoryLock one_at_a_time(options_.out, io::DirectoryLock::WhenHeld::wait);
  io::JsonLinesWriter::open(options_.out / io::kRecordedFile, io::JsonLinesWriter::Mode::append)
      .write(runs::to_line(named_as(line, run)));
}

void Sweep::note_failure(const PlannedRun& run, Exit code, const std::string& message, const SweepHooks& hooks) {
  if (code == Exit::usage && is_held(options_.out / run.dir)) {
    if (hooks.say) hooks.say(run.dir + ": " + std::string(kLeftToThat));
    return;
  }
  if (code == Exit::usage && left_as_it_is(run)) return;  // and has ended meanwhile
  failures_.push_back({run.dir, message, code});
  if (hooks.say) hooks.say(fmt::format("{}: failed: {}", run.dir, message));
}

void Sweep::throw_failures() const {
  std::vector<std::string> texts;
  for (const Failure& failure : failures_) texts.push_back(failure.dir + ": " + failure.message);
  throw Error(failures_.front().code,
              fmt::format("{} of {} runs failed: {}", failures_.size(), plan_.runs.size(), join(texts, "; ")));
}

RunResult train_planned(const PlannedRun& run, const fs::path& dir, const RunHooks& hooks, bool fresh) {
  try {
    const auto status = run_status(dir);
    DataKeys data;
    const bool again = fresh && status && !(is_of_this_build(dir) && !has_other_data(run, dir, data));
    if (!status || again) return start_run(run.config, dir, again, run.variant, hooks);
    const std::string wanted = config_text(kept_config(run.config));
    if (io::read_file(dir / io::kConfigFile) != wanted) {
      const io::DirectoryLock nobody_trains_it(dir);
      io::write_file_atomic(dir / io::kConfigFile, wanted);
    }
    return resume_run(dir, hooks);
  } catch (const DivergedError& diverged) {  // a result of the sweep, not its end
    if (hooks.observer != nullptr) hooks.observer->warned(diverged.what());
    return {RunStatus::diverged, 0};
  }
}

}  // namespace siamese::train

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/progress.h"
#include "siamese/cli/signals.h"
#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/config/load.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/report.h"
#include "siamese/runs/sweep_file.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/run.h"
#include "siamese/train/sweep_plan.h"
#include "siamese/train/sweep_record.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;
using train::RunStatus;

struct SweepArguments {
  std::string sweep;
  std::vector<std::string> overrides;
  std::string out;
  std::string record;
  bool dry_run = false;
  bool quiet = false;
  bool fresh = false;
};

bool has_ended(std::optional<RunStatus> status) {
  return status == RunStatus::finished || status == RunStatus::diverged;
}

// "finished, loss 0.8712".
std::string result_text(const runs::RunSummary& summary) {
  const double loss = std::isfinite(summary.val_loss) ? summary.val_loss : summary.train_loss;
  return fmt::format("{}, loss {}", enum_text(summary.status), std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "-");
}

// The record of the sweep file is about the runs of that file: an override that changes results makes other runs, a
// smoke test perhaps, and they are kept out of it unless --record asks for them.
fs::path record_file(const SweepArguments& arguments, const train::SweepPlan& plan) {
  if (!arguments.record.empty() || plan.record.empty()) return arguments.record;
  for (const std::string& assignment : arguments.overrides) {
    const bool of_engine = assignment.starts_with("engine=") && assignment.find("precision") == std::string::npos;
    if (of_engine || !train::decides_result(assignment.substr(0, assignment.find('=')))) continue;
    if (!arguments.quiet) {
      std::fprintf(stderr, "%s: neither read nor written, because of %s\n", plan.record.c_str(), assignment.c_str());
    }
    return {};
  }
  return plan.record;
}

class Sweep {
 public:
  Sweep(train::SweepPlan plan, fs::path out, const fs::path& record, const SweepArguments& arguments)
      : plan_(std::move(plan)), out_(std::move(out)), quiet_(arguments.quiet), fresh_(arguments.fresh) {
    if (record.empty()) return;
    for (const auto name : {io::kRecordedFile, io::kSweepFile, io::kReportFile}) {
      if (fs::weakly_canonical(record) != fs::weakly_canonical(out_ / name)) continue;
      throw UsageError("--record: " + record.string() + " is what the sweep itself writes into " + out_.string() +
                       "; choose another file");
    }
    using Lines = train::SweepRecord::Lines;
    record_.emplace(record, fresh_ ? Lines::of_this_build : Lines::all);
  }

  // Before anything is written: a run that stands under the same name must be the same run.
  void check_earlier_runs() {
    if (train::run_status(out_))
      throw UsageError(out_.string() + ": is a run, not the folder of a sweep; choose another --out");
    check_files_are_ours();
    for (const auto& run : plan_.runs) {
      if (is_another_run(run)) {
        throw UsageError(
            (out_ / run.dir).string() +
            ": was run with another config than the sweep now asks for; choose another --out or remove it");
      }
    }
  }

  // What --dry-run prints.
  std::string list() {
    std::vector<std::vector<std::string>> rows;
    size_t recorded = 0, here = 0;
    for (const auto& run : plan_.runs) {
      std::string state = "to do";
      const auto status = train::run_status(out_ / run.dir);
      if (const auto line = find(run)) {
        state = "recorded: " + result_text(line->summary);
        ++recorded;
      } else if (has_ended(status) && is_outdated(out_ / run.dir)) {
        state = fmt::format("to do: {} here, by another build", enum_text(*status));
      } else if (has_ended(status)) {
        state = fmt::format("{} here", enum_text(*status));
        ++here;
      } else if (status) {
        state = "to do: begun here";
      }
      rows.push_back({run.dir, state});
    }
    return text_table(rows) + fmt::format("{} runs: {} recorded, {} ended here, {} to do\n", rows.size(), recorded,
                                          here, rows.size() - recorded - here);
  }

  int train() {
    io::make_directory(out_);
    if (record_) record_->check_writable();
    io::write_file_atomic(out_ / io::kSweepFile, train::to_json(plan_));
    write_recorded();
    Progress progress(quiet_ ? Progress::Style::quiet : Progress::Style::shown);
    const train::RunHooks hooks{&progress, caught_signal};  // of all runs: train.max_hours is the sweep's
    for (size_t i = 0; i < plan_.runs.size(); ++i) {
      const auto& run = plan_.runs[i];
      say(fmt::format("\n[{}/{}] {}", i + 1, plan_.runs.size(), run.dir));
      if (const auto line = find(run)) {
        say("recorded before: " + result_text(line->summary) + ", left as it is");
        continue;
      }
      const fs::path dir = out_ / run.dir;
      const auto before = train::run_status(dir);
      const bool stays = has_ended(before) && !is_outdated(dir);
      if (stays) {
        say(fmt::format("{} before, left as it is", enum_text(*before)));
      } else if (const auto result = train_one(run, hooks); result.status == RunStatus::stopped) {
        std::fprintf(stderr, "%s; go on with the same command\n", stopped_text(result));
        return exit_code_of(result);
      }
      if (record_) record_->add(train::record_line(plan_.name, run, dir));
      write_recorded();
      if (!stays) report::write_report(out_);
    }
    report::write_report(out_);
    std::printf("%s\nreport: %s\n", report::summary_table(out_).c_str(), (out_ / io::kReportFile).c_str());
    return 0;
  }

 private:
  // sweep.json comes first: files of these names in a folder without one are somebody else's.
  void check_files_are_ours() const {
    const fs::path plan = out_ / io::kSweepFile;
    if (is_taken(plan)) {
      if (!runs::is_sweep_file(plan)) throw UsageError(plan.string() + ": not of a sweep; choose another --out");
      return;
    }
    for (const auto name : {io::kRecordedFile, io::kReportFile}) {
      if (is_taken(out_ / name)) {
        throw UsageError((out_ / name).string() + ": exists already, in a folder that is no sweep's (no " +
                         std::string(io::kSweepFile) + "); choose another --out");
      }
    }
  }

  // With --fresh: what another build made counts as not made.
  bool is_outdated(const fs::path& dir) const { return fresh_ && !train::is_of_this_build(dir); }

  void say(const std::string& text) const {
    if (!quiet_) std::fprintf(stderr, "%s\n", printable(text).c_str());
  }

  std::optional<runs::RecordLine> find(const train::PlannedRun& run) {
    return record_ ? record_->find(run.config) : std::nullopt;
  }

  // A run that is not trained again may have been run with other engine.* keys: they do not change its result. One that
  // would be continued goes on with its own config, so that has to be the one asked for; but a limit of hours, or of
  // checkpoints kept, is taken over.
  bool is_another_run(const train::PlannedRun& run) {
    const fs::path dir = out_ / run.dir;
    const auto status = train::run_status(dir);
    const train::RunConfig wanted = train::kept_config(run.config);
    if (!status || io::read_file(dir / io::kConfigFile) == train::config_text(wanted)) return false;
    train::RunConfig there = train::read_config_file((dir / io::kConfigFile).string());
    if (has_ended(status) || find(run)) return train::result_config(there) != train::result_config(wanted);
    take_limits(wanted, there);
    return train::config_text(there) != train::config_text(wanted);
  }

  static void take_limits(const train::RunConfig& from, train::RunConfig& to) {
    to.train.max_hours = from.train.max_hours;
    to.train.keep_last = from.train.keep_last;
    to.train.keep_every = from.train.keep_every;
  }

  train::RunResult train_one(const train::PlannedRun& run, const train::RunHooks& hooks) const {
    const fs::path dir = out_ / run.dir;
    try {
      const auto status = train::run_status(dir);
      const bool again = has_ended(status) && is_outdated(dir);
      if (!status || again) return train::start_run(run.config, dir, again, run.variant, hooks);
      const std::string wanted = train::config_text(train::kept_config(run.config));
      if (io::read_file(dir / io::kConfigFile) != wanted) {
        const io::DirectoryLock nobody_trains_it(dir);
        io::write_file_atomic(dir / io::kConfigFile, wanted);
      }
      return train::resume_run(dir, hooks);
    } catch (const DivergedError& diverged) {  // a result of the sweep, not its end
      std::fprintf(stderr, "%s\n", printable(diverged.what()).c_str());
      return {RunStatus::diverged, 0};
    }
  }

  // The lines of the record about runs of this plan, under the names they have in it: the report reads them.
  // Another sweep may share the folder: one at a time, each with all that the record holds by then.
  void write_recorded() {
    const io::DirectoryLock one_at_a_time(out_, io::DirectoryLock::WhenHeld::wait);
    std::string text;
    for (const auto& run : plan_.runs) {
      if (auto line = find(run)) {
        line->dir = run.dir;
        line->variant = run.variant;
        text += runs::to_line(*line) + "\n";
      }
    }
    const fs::path path = out_ / io::kRecordedFile;
    if (!text.empty()) return io::write_file_atomic(path, text);
    std::error_code none;
    fs::remove(path, none);  // of an earlier command: no longer true
  }

  train::SweepPlan plan_;
  fs::path out_;
  bool quiet_;
  bool fresh_;
  std::optional<train::SweepRecord> record_;
};

int run_sweep(const SweepArguments& arguments) {
  auto plan =
      train::plan_sweep(config::find_config(arguments.sweep, config_folders()), arguments.overrides, config_folders());
  const fs::path out = arguments.out.empty() ? fs::path("runs") / plan.name : fs::path(arguments.out);
  const fs::path record = record_file(arguments, plan);
  Sweep sweep(std::move(plan), out, record, arguments);
  sweep.check_earlier_runs();
  if (!arguments.dry_run) return sweep.train();
  std::printf("%s", sweep.list().c_str());
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  auto* const verb = app.add_subcommand(
      "sweep", "Train a grid of runs; recorded and finished ones are skipped, interrupted ones continued");
  const auto arguments = std::make_shared<SweepArguments>();
  verb->add_option("SWEEP", arguments->sweep, "A YAML file (config, set, variants, grid, record)")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for all runs");
  verb->add_option("--out", arguments->out, "Directory of the runs; default runs/<name of the sweep>");
  verb->add_option("--record", arguments->record, "File of runs that ended; default: what SWEEP names, if it does");
  verb->add_flag("--dry-run", arguments->dry_run, "List the runs and what became of them; train and write nothing");
  verb->add_flag("--fresh", arguments->fresh, "Train again what another build of this program recorded or trained");
  verb->add_flag("--quiet", arguments->quiet, "No progress");
  verb->footer("Example: siamese sweep configs/demo.yaml --out runs/demo");
  verb->callback([arguments, &exit_code] { exit_code = run_sweep(*arguments); });
}

}  // namespace siamese::cli

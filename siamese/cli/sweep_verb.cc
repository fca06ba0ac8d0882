#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/own_process.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/progress.h"
#include "siamese/cli/signals.h"
#include "siamese/cli/table.h"
#include "siamese/cli/together.h"
#include "siamese/cli/verbs.h"
#include "siamese/config/load.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/report.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/sweep.h"

namespace siamese::cli {
namespace sweep_verb {

namespace fs = std::filesystem;

struct Arguments {
  std::string sweep;
  std::vector<std::string> overrides;
  std::string out;
  std::string record;
  int64_t jobs = 1;
  int64_t threads = 0;
  bool dry_run = false;
  bool recorded = false;
  bool fresh = false;
  bool quiet = false;
  // What a sweep with several jobs tells the process of a run.
  std::string worker, plan;
  int64_t parent = 0;

  Progress::Style style() const { return quiet ? Progress::Style::quiet : Progress::Style::shown; }
};

// The record of the sweep file is about the runs of that file: an override that changes results makes other runs, a
// smoke test perhaps, and they are kept out of it unless --record asks for them.
fs::path record_file(const Arguments& arguments, const train::SweepPlan& plan) {
  if (!arguments.record.empty() || plan.record.empty()) return arguments.record;
  const std::string deciding = train::deciding_override(arguments.overrides);
  if (deciding.empty()) return plan.record;
  if (!arguments.quiet) {
    std::fprintf(stderr, "%s: neither read nor written, because of %s\n", printable(plan.record.string()).c_str(),
                 printable(deciding).c_str());
  }
  return {};
}

train::SweepPlan plan_of(const Arguments& arguments) {
  return train::plan_sweep(config::find_config(arguments.sweep, config_folders()), arguments.overrides,
                           config_folders(), arguments.worker);
}

fs::path folder_of(const Arguments& arguments, const train::SweepPlan& plan) {
  return arguments.out.empty() ? fs::path("runs") / plan.name : fs::path(arguments.out);
}

// One run of a sweep with several jobs, in this process. The other end takes care of record and report.
int train_one(const Arguments& arguments) {
  // Should the sweep be killed, its runs save and stop.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != arguments.parent) return static_cast<int>(Exit::failure);
  const train::SweepPlan plan = plan_of(arguments);
  if (plan.runs.size() != 1 || train::plan_checksum(plan.runs.front()) != arguments.plan) {
    throw UsageError(arguments.sweep + ": was changed since the sweep began, and means another run " +
                     arguments.worker + " now; start the sweep again");
  }
  Progress progress(arguments.style());
  const auto result = train::train_planned(
      plan.runs.front(), folder_of(arguments, plan) / arguments.worker,
      {.observer = &progress, .stop_signal = caught_signal, .asked_by = arguments.parent}, arguments.fresh);
  return result.status == train::RunStatus::stopped ? exit_code_of(result) : 0;
}

std::vector<std::string> worker_command(const Arguments& arguments, const fs::path& out, const train::PlannedRun& run) {
  std::vector<std::string> words = {kOwnProgram, "sweep",
                                    "--out",     out.string(),
                                    "--worker",  run.dir,
                                    "--plan",    train::plan_checksum(run),
                                    "--parent",  std::to_string(getpid()),
                                    "--threads", std::to_string(train::core_count())};
  if (arguments.quiet) words.emplace_back("--quiet");
  if (arguments.fresh) words.emplace_back("--fresh");
  words.emplace_back("--");
  words.push_back(arguments.sweep);
  words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
  return words;
}

// The page while the sweep goes on. Drawing it reads every run, so it is drawn again only when that has become a small
// part of the time.
class LiveReport {
 public:
  explicit LiveReport(fs::path sweep) : sweep_(std::move(sweep)) {}
  void refresh() {
    constexpr int kShare = 20;
    const auto start = Clock::now();
    if (drawn_ && start - last_ < kShare * cost_) return;
    report::write_report(sweep_);
    last_ = Clock::now();
    cost_ = last_ - start;
    drawn_ = true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  fs::path sweep_;
  bool drawn_ = false;
  Clock::time_point last_;
  Clock::duration cost_{};
};

struct Counts {
  size_t recorded = 0, here = 0, to_do = 0;
  std::string text() const {
    return fmt::format("{} runs: {} recorded, {} ended here, {} to do", recorded + here + to_do, recorded, here, to_do);
  }
};

Counts count(const std::vector<train::RunStanding>& standings) {
  Counts counts;
  for (const train::RunStanding& run : standings) {
    const bool recorded = run.standing == train::Standing::recorded;
    const bool here = run.standing == train::Standing::ended_here;
    ++(recorded ? counts.recorded : here ? counts.here : counts.to_do);
  }
  return counts;
}

void list(train::Sweep& sweep) {
  std::vector<std::vector<std::string>> rows;
  const auto standings = sweep.standings();
  for (size_t i = 0; i < standings.size(); ++i) rows.push_back({sweep.plan().runs[i].dir, standings[i].text});
  const Counts counts = count(standings);
  std::printf("%s%s\n", text_table(rows).c_str(), counts.text().c_str());
  std::fflush(stdout);  // the list needs no data, and timing may take a moment
  sweep.check_data();
  if (counts.to_do > 0) std::printf("%s\n", sweep.estimate(train::MeasureSteps::always).text().c_str());
}

// What is known by now, as if the sweep had no other runs. No data are opened: they may be on another machine.
void show_recorded(train::Sweep& sweep, const fs::path& out) {
  sweep.check_folder();
  sweep.write_known();
  report::write_report(out);
  const std::string table = report::summary_of_ended(out);
  std::printf("%s\n%s%sreport: %s\n", count(sweep.standings()).text().c_str(), table.c_str(), table.empty() ? "" : "\n",
              printable((out / io::kReportFile).string()).c_str());
}

// Every rank comes here when it has nothing left to train: what failed on any of them is rank 0's to tell.
void wait_for_all(comm::Group& group, const std::optional<Error>& failed) {
  group.set_timeout(0);
  const auto texts = comm::gather(group, failed ? group.name() + ": " + failed->what() : "");
  const auto codes = comm::gather(group, std::to_string(failed ? static_cast<int>(failed->code()) : 0));
  if (!group.leads()) return;
  std::vector<std::string> told;
  int code = 0;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    told.push_back(texts[rank]);
    if (code == 0) code = std::stoi(codes[rank]);
  }
  if (!told.empty()) throw Error(static_cast<Exit>(code), join(told, "; "));
}

// With `group`: each rank trains runs of its own, and leaves to others what they have begun.
train::RunResult train_runs(train::Sweep& sweep, const train::SweepHooks& hooks, comm::Group* group) {
  if (group == nullptr) return sweep.train(hooks);
  std::optional<Error> failed;
  train::RunResult result{train::RunStatus::finished, 0};
  try {
    result = sweep.train(hooks);
  } catch (const Error& error) {
    failed = error;
  }
  wait_for_all(*group, failed);
  return result;
}

int train_all(train::Sweep& sweep, const Arguments& arguments, const fs::path& out, comm::Group* group) {
  const bool leads = group == nullptr || group->leads();
  const bool quiet = arguments.quiet || !leads;
  const auto say = [&](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", printable(text).c_str());
  };
  if (!quiet) {
    const train::SweepEstimate estimate = sweep.estimate(train::MeasureSteps::worthwhile);
    if (estimate.runs > 0) say(estimate.text());
  }
  Progress progress(leads ? arguments.style() : Progress::Style::quiet);
  LiveReport page(out);
  if (arguments.jobs > 1) catch_signals();  // here is nothing to save, but there is in the others
  const train::SweepHooks hooks{
      .run = {&progress, caught_signal},
      .say = say,
      .run_ended =
          [&] {
            if (leads) page.refresh();
          },
      .worker = [&](const train::PlannedRun& run) { return worker_command(arguments, out, run); },
      .worker_said =
          [](const train::PlannedRun& run, const std::string& line) {
            std::fprintf(stderr, "%s: %s\n", printable(run.dir).c_str(), printable(line).c_str());
          },
  };
  const train::RunResult result = train_runs(sweep, hooks, group);
  if (!leads) return 0;
  if (result.status == train::RunStatus::stopped) {
    std::fprintf(stderr, "%s; go on with the same command\n", stopped_text(result));
    return exit_code_of(result);
  }
  report::write_report(out);
  std::printf("%s\nreport: %s\n", report::summary_table(out).c_str(),
              printable((out / io::kReportFile).string()).c_str());
  return 0;
}

int run(const Arguments& arguments, comm::Group* group) {
  const int64_t cores = train::core_count();
  train::limit_cores(arguments.threads > 0 ? arguments.threads : std::max<int64_t>(1, cores / arguments.jobs));
  if (!arguments.worker.empty()) return train_one(arguments);
  auto plan = plan_of(arguments);
  const fs::path out = folder_of(arguments, plan);
  const fs::path record = record_file(arguments, plan);
  const size_t first =
      group == nullptr ? 0 : plan.runs.size() * static_cast<size_t>(group->rank()) / static_cast<size_t>(group->size());
  train::Sweep sweep(std::move(plan),
                     {.out = out, .record = record, .jobs = arguments.jobs, .fresh = arguments.fresh, .first = first});
  if (arguments.recorded) {
    if (group == nullptr || group->leads()) show_recorded(sweep, out);
    return 0;
  }
  if (arguments.dry_run) {
    sweep.check_folder();
    if (group == nullptr || group->leads()) list(sweep);
    return 0;
  }
  sweep.check();
  return train_all(sweep, arguments, out, group);
}

}  // namespace sweep_verb

void add_sweep(CLI::App& app, int& exit_code) {
  auto* const verb = app.add_subcommand(
      "sweep", "Train a grid of runs; recorded and finished ones are skipped, interrupted ones continued");
  const auto arguments = std::make_shared<sweep_verb::Arguments>();
  verb->add_option("SWEEP", arguments->sweep, "A YAML file (config, set, variants, grid, record)")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for all runs");
  verb->add_option("-o,--out", arguments->out, "Directory of the runs; default runs/<name of the sweep>");
  verb->add_option("--record", arguments->record, "File of runs that ended; default: what SWEEP names, if it does");
  verb->add_option("--jobs", arguments->jobs, "Runs at once, each in a process of its own")->check(CLI::Range(1, 1024));
  verb->add_option("--threads", arguments->threads,
                   "Threads of a run whose engine.threads is 0; 0: the cores divided by --jobs")
      ->check(CLI::Range(0, 1024));
  auto* const dry_run =
      verb->add_flag("--dry-run", arguments->dry_run,
                     "List the runs, what became of them and how long the rest will take; train and write nothing");
  verb->add_flag("--recorded", arguments->recorded,
                 "The table and page of the runs that are recorded or ended here; train nothing, need no data")
      ->excludes(dry_run);
  verb->add_flag("--fresh", arguments->fresh,
                 "Train again what another build of this program made, or what was trained on other data");
  verb->add_flag("--quiet", arguments->quiet, "No progress");
  verb->add_option("--worker", arguments->worker)->group("");
  verb->add_option("--plan", arguments->plan)->group("");
  verb->add_option("--parent", arguments->parent)->group("");
  verb->footer("Example: siamese sweep configs/demo.yaml --out runs/demo --jobs 2");
  verb->callback([arguments, &exit_code] {
    exit_code = side_by_side([&](comm::Group* group) { return sweep_verb::run(*arguments, group); });
  });
}

}  // namespace siamese::cli

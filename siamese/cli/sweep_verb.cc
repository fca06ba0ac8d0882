#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/progress.h"
#include "siamese/cli/signals.h"
#include "siamese/cli/verbs.h"
#include "siamese/config/load.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/report.h"
#include "siamese/train/run.h"
#include "siamese/train/sweep_plan.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;

struct SweepArguments {
  std::string sweep;
  std::vector<std::string> overrides;
  std::string out;
  bool quiet = false;
};

// Before anything is written: a run that stands under the same name must be the same run.
void check_earlier_run(const train::PlannedRun& run, const fs::path& dir) {
  if (!train::run_status(dir)) return;
  if (io::read_file(dir / io::kConfigFile) != train::config_text(run.config)) {
    throw UsageError(dir.string() +
                     ": was run with another config than the sweep now asks for; choose another --out or remove it");
  }
}

// Starts, continues or leaves a run as its directory demands.
train::RunResult run_one(const train::PlannedRun& run, const fs::path& dir, const train::RunHooks& hooks) {
  const auto status = train::run_status(dir);
  if (!status) return train::start_run(run.config, dir, false, run.variant, hooks);
  if (*status == train::RunStatus::finished || *status == train::RunStatus::diverged) return {*status, 0};
  return train::resume_run(dir, hooks);
}

int run_sweep(const SweepArguments& arguments) {
  const auto plan =
      train::plan_sweep(config::find_config(arguments.sweep, config_folders()), arguments.overrides, config_folders());
  const fs::path out = arguments.out.empty() ? fs::path("runs") / plan.name : fs::path(arguments.out);
  if (train::run_status(out))
    throw UsageError(out.string() + ": is a run, not the folder of a sweep; choose another --out");
  for (const auto& run : plan.runs) check_earlier_run(run, out / run.dir);
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw SystemError(out.string() + ": cannot be made: " + error.message());
  io::write_file_atomic(out / "sweep.json", train::to_json(plan));
  Progress progress(arguments.quiet ? Progress::Style::quiet : Progress::Style::shown);
  const train::RunHooks hooks{&progress, caught_signal};
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const auto& run = plan.runs[i];
    if (!arguments.quiet) std::fprintf(stderr, "\n[%zu/%zu] %s\n", i + 1, plan.runs.size(), run.dir.c_str());
    try {
      const auto before = train::run_status(out / run.dir);
      const auto result = run_one(run, out / run.dir, hooks);
      if (result.status == train::RunStatus::stopped) {
        std::fprintf(stderr, "stopped and saved; go on with the same command\n");
        return exit_code_of(result.signal);
      }
      if (before == result.status && !arguments.quiet) {
        std::fprintf(stderr, "%s before, left as it is\n", std::string(enum_text(result.status)).c_str());
      }
    } catch (const DivergedError& diverged) {  // a result of the sweep, not its end
      std::fprintf(stderr, "%s\n", diverged.what());
    }
    report::write_report(out);
  }
  std::printf("%s\nreport: %s\n", report::summary_table(out).c_str(), (out / io::kReportFile).c_str());
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  auto* const verb =
      app.add_subcommand("sweep", "Train a grid of runs; finished ones are skipped, interrupted ones continued");
  const auto arguments = std::make_shared<SweepArguments>();
  verb->add_option("SWEEP", arguments->sweep, "A YAML file (config, set, variants, grid)")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for all runs");
  verb->add_option("--out", arguments->out, "Directory of the runs; default runs/<name of the sweep>");
  verb->add_flag("--quiet", arguments->quiet, "No progress");
  verb->footer("Example: siamese sweep configs/demo.yaml --out runs/demo");
  verb->callback([arguments, &exit_code] { exit_code = run_sweep(*arguments); });
}

}  // namespace siamese::cli

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "siamese/base/utf8.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/progress.h"
#include "siamese/cli/signals.h"
#include "siamese/cli/together.h"
#include "siamese/cli/verbs.h"
#include "siamese/train/run.h"

namespace siamese::cli {
namespace {

int finish(const train::RunResult& result, const std::string& run_dir, bool json) {
  if (result.status == train::RunStatus::stopped) {
    std::fprintf(stderr, "%s; go on with: siamese resume %s\n", stopped_text(result), printable(run_dir).c_str());
    return exit_code_of(result);
  }
  if (!json) std::printf("finished %s\n", printable(run_dir).c_str());
  return 0;
}

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  bool overwrite = false;
  bool accept_changed_data = false;
  bool quiet = false;
  bool json = false;

  Progress::Style style() const {
    return json ? Progress::Style::json : quiet ? Progress::Style::quiet : Progress::Style::shown;
  }
};

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  auto* const verb = app.add_subcommand("train", "Train a model into a new run directory");
  const auto arguments = std::make_shared<TrainArguments>();
  verb->add_option("CONFIG", arguments->config, "A YAML file or the name of a recipe (siamese config list)")
      ->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value, for any key of the config");
  verb->add_option("-o,--out", arguments->out, "The run directory to make")->required();
  verb->add_flag("--overwrite", arguments->overwrite, "Replace an earlier run that stands there");
  verb->add_flag("--quiet", arguments->quiet, "No progress");
  verb->add_flag("--json", arguments->json, "Every step and evaluation as a JSON line on stdout");
  verb->footer("Example: siamese train arithmetic-small model.residual=pre optim.lr=2e-3 --out runs/pre");
  verb->callback([arguments, &exit_code] {
    exit_code = together([&](train::RunHooks hooks) {
      const auto config = load_run_config(arguments->config, arguments->overrides);
      Progress progress(arguments->style());
      hooks.observer = &progress;
      return finish(train::start_run(config, arguments->out, arguments->overwrite, "", hooks), arguments->out,
                    arguments->json);
    });
  });
}

void add_resume(CLI::App& app, int& exit_code) {
  auto* const verb = app.add_subcommand("resume", "Go on with a run that was stopped or killed, to the same bits");
  const auto arguments = std::make_shared<TrainArguments>();
  verb->add_option("RUN", arguments->out, "A run directory, or one of its checkpoints")->required();
  verb->add_option("OVERRIDES", arguments->overrides,
                   "key=value for what may change: train.steps, train.max_hours, keys of eval, how often is recorded");
  verb->add_flag("--accept-changed-data", arguments->accept_changed_data,
                 "Go on although the data are not what they were; trainer.json keeps what changed");
  verb->add_flag("--quiet", arguments->quiet, "No progress");
  verb->add_flag("--json", arguments->json, "Every step and evaluation as a JSON line on stdout");
  verb->footer("Example: siamese resume runs/pre train.steps=2000");
  verb->callback([arguments, &exit_code] {
    exit_code = together([&](train::RunHooks hooks) {
      Progress progress(arguments->style());
      hooks.observer = &progress;
      const auto result =
          train::resume_run(arguments->out, hooks, arguments->accept_changed_data, arguments->overrides);
      return finish(result, arguments->out, arguments->json);
    });
  });
}

}  // namespace siamese::cli

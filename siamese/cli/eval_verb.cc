#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/eval_tasks.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/table.h"
#include "siamese/cli/together.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/data/identity.h"
#include "siamese/eval/evaluate.h"
#include "siamese/io/run_dir.h"
#include "siamese/ops/reduce.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/classifier.h"
#include "siamese/train/device.h"
#include "siamese/train/tasks.h"
#include "siamese/train/trainer_state.h"

namespace siamese::cli {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> overrides;
  TaskArguments tasks;
  bool json = false;
};

std::string accuracy_table(const eval::Evaluation& evaluation) {
  std::map<char, std::map<int, std::string>> cells;
  int most_digits = 0;
  for (const auto& group : evaluation.groups) {
    const double share =
        group.count > 0 ? 100.0 * static_cast<double>(group.correct) / static_cast<double>(group.count) : 0;
    cells[group.operation][group.digits] = fmt::format("{:.1f} % of {}", share, group.count);
    most_digits = std::max(most_digits, group.digits);
  }
  std::vector<std::vector<std::string>> rows = {{"exact match"}};
  for (int digits = 1; digits <= most_digits; ++digits)
    rows[0].push_back(fmt::format("{} digit{}", digits, digits > 1 ? "s" : ""));
  for (const auto& [operation, by_digits] : cells) {
    rows.push_back({std::string(1, operation)});
    for (const auto& entry : by_digits) rows.back().push_back(entry.second);
  }
  return text_table(rows);
}

// A loss that is not finite is no result: what to look at is named instead.
void check_finite(const eval::Evaluation& result, const train::LoadedModel& loaded) {
  if (std::isfinite(result.held_out.loss)) return;
  for (const auto& parameter : loaded.model->parameters().list()) {
    if (std::isfinite(ops::sum_squares(parameter.value))) continue;
    throw DataError(loaded.checkpoint.string() + ": " + parameter.name + " is not finite, so that the loss is not");
  }
  throw DivergedError(loaded.checkpoint.string() + ": the held-out loss is not finite, although all weights are");
}

void print_evaluation(const eval::Evaluation& result, const train::LoadedModel& loaded, bool json) {
  if (json) {
    std::printf("%s\n", eval::to_json(result).c_str());
    return;
  }
  std::printf("%s: %s, step %lld\n", printable(loaded.checkpoint.string()).c_str(),
              loaded.config.model.residual.c_str(), static_cast<long long>(loaded.step));
  std::printf("%s, %s\n", result.loss_text().c_str(), result.measures_text().c_str());
  if (!result.groups.empty()) {
    std::printf("%s", accuracy_table(result).c_str());
  }
  for (const runs::PromptRecord& made : result.prompts) {
    std::printf("%s | %s\n", printable(made.prompt).c_str(), printable(made.text).c_str());
  }
}

train::RunConfig eval_config(const EvalArguments& arguments) {
  // Overrides may change how much is evaluated and on what, never the model.
  train::RunConfig config = load_stored_config(arguments.run, arguments.overrides,
                                               {"data.", "eval.", "engine.", "train.batch=", "train.micro_batch="},
                                               "keys of data, eval and engine, train.batch and train.micro_batch");
  if (config.eval.classifier.empty()) config.eval.samples = 0;  // nobody would look at them
  const bool asked = std::any_of(arguments.overrides.begin(), arguments.overrides.end(),
                                 [](const std::string& text) { return text.starts_with("eval.averaged="); });
  config.eval.averaged = config.eval.averaged && (asked || train::keeps_average(arguments.run));
  return config;
}

// Without a word, a loss on files that have changed would be taken for that on the run's own.
void warn_of_changed_data(const EvalArguments& arguments, const train::RunConfig& config,
                          const std::filesystem::path& checkpoint) {
  const bool named = std::any_of(arguments.overrides.begin(), arguments.overrides.end(),
                                 [](const std::string& text) { return text.starts_with("data."); });
  const std::filesystem::path file = checkpoint / io::kTrainerFile;
  if (named || !is_there(file)) return;
  const data::DataIdentity then = train::read_trainer_state(file).data;
  if (then.empty()) return;
  std::optional<std::string> changed;
  try {
    changed = data::difference(then, data::identity_of(config.data));
  } catch (const DataError&) {  // files for training alone may be gone
    return;
  }
  if (changed) std::fprintf(stderr, "siamese: %s: not what the run was trained on\n", printable(*changed).c_str());
}

// `group`: ranks that share the work, null when there is one process. Rank 0 goes first: what it refuses is said once,
// and the others take the checkpoint that it found.
int evaluate_run(EvalArguments arguments, comm::Group* group) {
  const bool leads = group == nullptr || group->leads();
  if (!leads) arguments.run = comm::from_leader(*group, std::string());
  const train::RunConfig config = eval_config(arguments);
  train::apply_engine(config.engine);
  if (leads) warn_of_slow_precision(config.engine);
  const bool averaged = config.eval.averaged;
  const auto loaded = train::load_model(arguments.run, averaged ? train::Weights::averaged : train::Weights::trained,
                                        at::kFloat, 0, train::device_of(config.engine));
  if (group != nullptr) group->set_timeout(config.engine.timeout);
  const auto ready = [&] {
    if (group != nullptr) comm::from_leader(*group, loaded.checkpoint.string());
  };
  if (!arguments.tasks.tasks.empty()) return evaluate_tasks(loaded, arguments.tasks, averaged, group, ready);
  if (leads && config.data.source == data::Source::random) {
    std::fprintf(stderr,
                 "siamese: data.source is random: this is the loss of random data, not of "
                 "text or images\n");
  }
  const auto test = data::open_held_out(config.data, train::sample_shape(loaded.config.model));
  if (leads) warn_of_changed_data(arguments, config, loaded.checkpoint);
  const train::Classifier classifier(config);
  const auto tasks = train::open_tasks(config, train::read_tokenizer(loaded.checkpoint, loaded.tokenizer));
  const auto words = config.eval.prompts.empty() ? nullptr : train::words_of(loaded);
  if (words != nullptr) train::check_prompts(*words, config);
  if (leads) ready();
  const auto result = eval::evaluate({.model = *loaded.model,
                                      .data = config.data,
                                      .held_out = *test.front().batches,
                                      .batch = config.train.batch,
                                      .rows = config.train.micro_batch,
                                      .step = loaded.step,
                                      .classifier = classifier.model(),
                                      .tasks = tasks ? &*tasks : nullptr,
                                      .sets = &test,
                                      .words = words.get(),
                                      .group = group},
                                     config.eval);
  if (!leads) return 0;
  check_finite(result, loaded);
  print_evaluation(result, loaded, arguments.json);
  return 0;
}

void add_task_options(CLI::App& verb, TaskArguments& tasks) {
  verb.add_option("--tasks", tasks.tasks,
                  "Instead: questions of OLMo's request sets. A set, a folder of sets, or a list of configs/tasks");
  auto* const asked = verb.get_option("--tasks");
  verb.add_option("--sets", tasks.sets, "The folder in which the sets of a list lie")->needs(asked);
  verb.add_option("--tokenizer", tasks.tokenizer, "tokenizer.json, or a folder that has one; else that of RUN")
      ->needs(asked);
  verb.add_option("--limit", tasks.limit, "Only the first so many documents of each set; 0 = all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->needs(asked);
  verb.add_flag("--generate", tasks.generate, "Generate answers also where a set is reported by likelihood")
      ->needs(asked);
  verb.add_option("-o,--out", tasks.out,
                  "Folder for scores and results, from which it also goes on; else tasks/ in RUN, or RUN.tasks")
      ->needs(asked);
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  auto* const verb =
      app.add_subcommand("eval", "Held-out loss and what the family is judged by: exact match, top-1, samples");
  const auto arguments = std::make_shared<EvalArguments>();
  verb->add_option("RUN", arguments->run, "A run directory (its latest) or a checkpoint")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for the keys of data, eval and engine");
  verb->add_flag("--json", arguments->json, "One JSON object");
  add_task_options(*verb, arguments->tasks);
  verb->footer(
      "Example: siamese eval runs/x eval.problems=200\n"
      "         siamese eval runs/x --tasks olmo --sets DIR --tokenizer tokenizer.json");
  verb->callback([arguments, &exit_code] {
    arguments->tasks.json = arguments->json;
    // `--tasks` takes all that follows; overrides among it are still overrides.
    std::erase_if(arguments->tasks.tasks, [&](const std::string& text) {
      const bool is_override = text.find('=') != std::string::npos && !is_folder(text);
      if (is_override) arguments->overrides.push_back(text);
      return is_override;
    });
    exit_code = side_by_side([&](comm::Group* group) { return evaluate_run(*arguments, group); });
  });
}

}  // namespace siamese::cli

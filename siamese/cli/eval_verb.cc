#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/eval/evaluate.h"
#include "siamese/ops/reduce.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/classifier.h"
#include "siamese/train/device.h"

namespace siamese::cli {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> overrides;
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

void evaluate_run(const EvalArguments& arguments) {
  // Overrides may change how much is evaluated and on what, never the model.
  train::RunConfig config = load_stored_config(arguments.run, arguments.overrides,
                                               {"data.", "eval.", "engine.", "train.batch=", "train.micro_batch="},
                                               "keys of data, eval and engine, train.batch and train.micro_batch");
  if (config.eval.classifier.empty()) config.eval.samples = 0;  // nobody would look at them
  train::apply_engine(config.engine);
  warn_of_slow_precision(config.engine);
  const bool asked = std::any_of(arguments.overrides.begin(), arguments.overrides.end(),
                                 [](const std::string& text) { return text.starts_with("eval.averaged="); });
  const bool averaged = config.eval.averaged && (asked || train::keeps_average(arguments.run));
  config.eval.averaged = averaged;
  const auto loaded = train::load_model(arguments.run, averaged ? train::Weights::averaged : train::Weights::trained,
                                        at::kFloat, 0, train::device_of(config.engine));
  if (config.data.source == data::Source::random) {
    std::fprintf(stderr,
                 "siamese: data.source is random: this is the loss of random data, not of "
                 "text or images\n");
  }
  const auto test = data::open_batches(config.data, data::Split::test, train::sample_shape(loaded.config.model), 0);
  const train::Classifier classifier(config);
  const auto words = config.eval.prompts.empty() ? nullptr : train::words_of(loaded);
  if (words != nullptr) train::check_prompts(*words, config);
  const auto result = eval::evaluate({.model = *loaded.model,
                                      .data = config.data,
                                      .held_out = *test,
                                      .batch = config.train.batch,
                                      .rows = config.train.micro_batch,
                                      .step = loaded.step,
                                      .classifier = classifier.model(),
                                      .words = words.get()},
                                     config.eval);
  check_finite(result, loaded);
  if (arguments.json) {
    std::printf("%s\n", eval::to_json(result).c_str());
    return;
  }
  std::printf("%s: %s, step %lld\n", loaded.checkpoint.c_str(), loaded.config.model.residual.c_str(),
              static_cast<long long>(loaded.step));
  std::printf("%s, %s\n", result.loss_text().c_str(), result.measures_text().c_str());
  if (!result.groups.empty()) {
    std::printf("%s", accuracy_table(result).c_str());
  }
  for (const runs::PromptRecord& made : result.prompts) {
    std::printf("%s | %s\n", printable(made.prompt).c_str(), printable(made.text).c_str());
  }
}

}  // namespace

void add_eval(CLI::App& app) {
  auto* const verb =
      app.add_subcommand("eval", "Held-out loss and what the family is judged by: exact match, top-1, samples");
  const auto arguments = std::make_shared<EvalArguments>();
  verb->add_option("RUN", arguments->run, "A run directory (its latest) or a checkpoint")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for the keys of data, eval and engine");
  verb->add_flag("--json", arguments->json, "One JSON object");
  verb->footer("Example: siamese eval runs/x eval.problems=200");
  verb->callback([arguments] { evaluate_run(*arguments); });
}

}  // namespace siamese::cli

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <c10/core/Device.h>

#include "siamese/base/check.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/short_count.h"
#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/config/fields.h"
#include "siamese/config/load.h"
#include "siamese/models/registry.h"
#include "siamese/train/config.h"
#include "siamese/train/freeze.h"
#include "siamese/train/optimizer.h"
#include "siamese/train/record_facts.h"

namespace siamese::cli {
namespace {

struct ConfigArguments {
  std::string config;
  std::vector<std::string> overrides;

  train::RunConfig read() const { return load_run_config(config, overrides); }
};

void list_recipes() {
  std::vector<std::vector<std::string>> rows = {
      {"recipe", "family", "scheme", "parameters", "blocks x width", "steps x batch x context"}};
  for (const auto& name : config::list_configs(config_folders())) {
    if (name.starts_with("tasks/")) continue;  // lists for `siamese eval --tasks`
    train::RunConfig config;
    try {
      if (is_sweep(config::load(name, {}, config_folders()))) continue;
      config = load_run_config(name, {});
    } catch (const Error& error) {  // perhaps some other program's YAML, or data that are not here: the rest is still
                                    // worth listing
      rows.push_back({name, error.what()});
      continue;
    }
    const auto model = models::make_model(config.model, config.init, 0, at::kMeta);
    rows.push_back({name, std::string(enum_text(config.model.family)), config.model.residual,
                    short_count(static_cast<double>(model->parameters().count())),
                    fmt::format("{} x {}", config.model.blocks, config.model.width),
                    fmt::format("{} x {} x {}", config.train.steps, config.train.batch, config.model.context)});
  }
  if (rows.size() == 1) {
    throw DataError(
        "no recipes: expected YAML files in ./configs, or where the binary came with them (../../configs or "
        "../share/siamese/configs from it)");
  }
  std::printf("%s", text_table(rows).c_str());
}

void check_config(const ConfigArguments& arguments) {
  const auto config = arguments.read();
  const auto model = models::make_model(config.model, config.init, 0, at::kMeta);
  const auto count = static_cast<double>(model->parameters().count());
  double embeddings = 0;
  for (const auto& parameter : model->parameters().list()) {
    if (parameter.kind == nn::ParameterKind::embedding) embeddings += static_cast<double>(parameter.value.numel());
  }
  train::freeze(config.optim.freeze, model->parameters());
  const double update_flops = train::optimizer_flops(config.optim, model->parameters());
  const double step_flops = train::step_flops(*model, config);
  const double tokens =
      static_cast<double>(config.train.batch * config.model.context) * static_cast<double>(config.train.steps);
  const auto active = static_cast<double>(model->active_parameters());
  std::printf(
      "%s", text_table({{"scheme", fmt::format("{}, family {}", config.model.residual, enum_text(config.model.family))},
                        {"parameters",
                         fmt::format("{:.0f} ({}), of these embeddings {}{}", count, short_count(count),
                                     short_count(embeddings), active < count ? ", active " + short_count(active) : "")},
                        {"tokens", fmt::format("{} in {} steps of {} {}", short_count(tokens), config.train.steps,
                                               config.train.batch, config.model.sees_images() ? "images" : "samples")},
                        {"FLOPs", fmt::format("{} a step{}, {} in all", short_count(step_flops),
                                              update_flops > 0 ? " (the update " + short_count(update_flops) + ")" : "",
                                              short_count(step_flops * static_cast<double>(config.train.steps)))},
                        {"memory", fmt::format("{} of weights, gradients{} moments (float32)",
                                               short_bytes(sizeof(float) *
                                                           (train::numbers_kept(config.optim, model->parameters()) +
                                                            (config.train.ema > 0 ? count : 0))),
                                               config.train.ema > 0 ? ", averages and" : " and")}})
                .c_str());
}

void print_keys() {
  std::vector<std::vector<std::string>> rows = {{"key", "default", "meaning"}};
  for (const auto& key : config::describe<train::RunConfig>()) rows.push_back({key.path, key.fallback, key.help});
  std::printf("%s", text_table(rows).c_str());
}

void add_config_arguments(CLI::App& verb, ConfigArguments& arguments) {
  verb.add_option("CONFIG", arguments.config, "A YAML file or the name of a recipe")->required();
  verb.add_option("OVERRIDES", arguments.overrides, "key=value, for any key");
}

}  // namespace

void add_config(CLI::App& app) {
  auto* const verb = app.add_subcommand("config", "Look at configurations: list, show, check, keys");
  verb->require_subcommand(1);
  verb->footer("Example: siamese config check arithmetic-small model.residual=siamese");
  const auto arguments = std::make_shared<ConfigArguments>();

  auto* const list = verb->add_subcommand("list", "The shipped recipes");
  list->footer("Example: siamese config list");
  list->callback([] { list_recipes(); });

  auto* const show = verb->add_subcommand("show", "The resolved config as YAML");
  add_config_arguments(*show, *arguments);
  show->footer("Example: siamese config show arithmetic-small optim.lr=2e-3");
  show->callback([arguments] { std::printf("%s", train::config_text(arguments->read()).c_str()); });

  auto* const check = verb->add_subcommand("check", "Validate a config and print parameters, tokens, FLOPs and memory");
  add_config_arguments(*check, *arguments);
  check->footer("Example: siamese config check siamese-1.3b");
  check->callback([arguments] { check_config(*arguments); });

  auto* const keys = verb->add_subcommand("keys", "Every key with its default and meaning");
  keys->footer("Example: siamese config keys");
  keys->callback([] { print_keys(); });
}

}  // namespace siamese::cli

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/verbs.h"
#include "siamese/eval/difference.h"
#include "siamese/io/strict_json.h"
#include "siamese/ops/operand.h"
#include "siamese/train/device.h"
#include "siamese/train/upcycle.h"

namespace siamese::cli {
namespace {

struct UpcycleArguments {
  std::string source;
  std::string scheme;
  std::vector<std::string> overrides;
  std::vector<std::string> data;
  std::string out;
  bool overwrite = false;
  bool json = false;
};

// What both models are asked: held-out samples of the source's own data, or random ones when it cannot be read.
struct Questions {
  std::unique_ptr<data::Batches> samples;
  std::string why_random;  // "" when they are the data's own
};

// Enough to see a difference, and for a model of 8192 tokens still a matter of seconds.
constexpr int64_t kMostContext = 512;
constexpr int64_t kMostSamples = 8;

Questions open_questions(const train::RunConfig& config) {
  data::SampleShape shape = train::sample_shape(config.model);
  shape.context = std::min(shape.context, kMostContext);
  try {
    return {data::open_batches(config.data, data::Split::test, shape, 0), ""};
  } catch (const DataError& error) {
    data::DataConfig random;
    random.source = data::Source::random;
    return {data::open_batches(random, data::Split::test, shape, config.train.seed), error.what()};
  }
}

// What was done, for the two ways of telling it.
struct UpcycleReport {
  const UpcycleArguments& arguments;
  const train::LoadedModel& source;
  const train::Upcycled& result;
  const Questions& questions;
  eval::Difference difference;

  int64_t tensors(train::Origin origin, bool of_scheme = true) const {
    return std::count_if(result.filled.begin(), result.filled.end(), [&](const train::FilledParameter& filled) {
      return filled.origin == origin && filled.of_scheme == of_scheme;
    });
  }
};

std::string to_json(const UpcycleReport& report) {
  nlohmann::ordered_json tensors;
  for (const auto& [origin, name] : EnumText<train::Origin>::names) tensors[std::string(name)] = report.tensors(origin);
  tensors["sublayers_copied"] = report.tensors(train::Origin::copied, false);
  const models::ModelConfig& model = report.result.config.model;
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"source", report.source.checkpoint.string()},
                                       {"step", report.source.step},
                                       {"out", report.arguments.out},
                                       {"residual", model.residual},
                                       {"attention_norm", std::string(enum_text(model.attention_norm))},
                                       {"norm_eps", model.norm_eps},
                                       {"exact", report.result.exact},
                                       {"tensors", tensors},
                                       {"parameters_before", report.source.model->parameters().count()},
                                       {"parameters_after", report.result.model->parameters().count()},
                                       {"data", report.questions.why_random.empty() ? "held_out" : "random"},
                                       {"max_logit_difference", report.difference.max_logit},
                                       {"loss_before", report.difference.loss_before},
                                       {"loss_after", report.difference.loss_after}};
  return io::json_text(json) + "\n";
}

std::string to_text(const UpcycleReport& report) {
  const models::ModelConfig& model = report.result.config.model;
  std::string text =
      fmt::format("{} ({}, step {}) -> {} ({})\n", report.source.checkpoint.string(),
                  report.source.config.model.residual, report.source.step, report.arguments.out, model.residual);
  text += fmt::format("gains and shifts of the scheme: {} set to 0, {} set to 1, {} copied",
                      report.tensors(train::Origin::zero), report.tensors(train::Origin::one),
                      report.tensors(train::Origin::copied));
  if (const auto scaled = report.tensors(train::Origin::scaled); scaled > 0) text += fmt::format(", {} scaled", scaled);
  if (const auto fresh = report.tensors(train::Origin::fresh); fresh > 0) text += fmt::format(", {} fresh", fresh);
  text += fmt::format("; other parameters: {} copied\n", report.tensors(train::Origin::copied, false));
  text += fmt::format("{} -> {} parameters\n", report.source.model->parameters().count(),
                      report.result.model->parameters().count());
  if (!report.questions.why_random.empty()) {
    text += fmt::format("no held-out data, random {} instead: {}\n", model.sees_images() ? "images" : "tokens",
                        report.questions.why_random);
  }
  text += fmt::format("{}: largest difference of a logit {:.3g}, loss {:.6f} -> {:.6f}\n",
                      report.questions.samples->describe(), report.difference.max_logit, report.difference.loss_before,
                      report.difference.loss_after);
  text +=
      report.result.exact
          ? "the same function to rounding\n"
          : fmt::format("the same function but for model.norm_eps = {}, which acts twice where a norm follows a norm\n",
                        model.norm_eps);
  return text + fmt::format("train on: siamese train {0}/config.yaml init.from={0} --out RUN\n", report.arguments.out);
}

void upcycle_run(const UpcycleArguments& arguments) {
  namespace fs = std::filesystem;
  if (arguments.out.empty()) throw UsageError("--out: expected the folder to make, got nothing");
  const train::RunConfig asked =
      load_stored_config(arguments.source, with_held_out(arguments.overrides, arguments.data), {"data.", "engine."},
                         "keys of data, to compare both models on, and engine");
  train::EngineConfig engine = asked.engine;
  engine.precision = ops::Precision::float32;  // two roundings of one function differ by more than the two schemes
  train::apply_engine(engine);
  const train::LoadedModel source =
      train::load_model(arguments.source, train::Weights::trained, at::kFloat, 0, train::device_of(engine));
  std::error_code none;
  if (fs::equivalent(source.checkpoint, arguments.out, none)) {
    throw UsageError(arguments.out + ": is the source itself; choose another --out");
  }
  train::check_free_for_weights(arguments.out, arguments.overwrite);
  const train::RunConfig& config = source.config;
  const train::Upcycled result = train::upcycle(source, arguments.scheme);
  const Questions questions = open_questions(asked);
  const int64_t samples = std::min(config.train.batch, kMostSamples);
  if (!arguments.json) {
    std::fprintf(stderr, "comparing both models on %lld samples: %s\n", static_cast<long long>(samples),
                 questions.samples->describe().c_str());
  }
  const eval::Difference difference = eval::difference(*source.model, *result.model, *questions.samples,
                                                       std::min(config.train.micro_batch, samples), samples);
  if (!std::isfinite(difference.loss_before)) {
    throw DataError(source.checkpoint.string() + ": its loss is not finite: there is nothing to go on from");
  }
  train::save_weights(arguments.out, result.config, *result.model, arguments.overwrite,
                      train::read_tokenizer(source.checkpoint, source.tokenizer));
  const UpcycleReport report{arguments, source, result, questions, difference};
  std::fputs((arguments.json ? to_json(report) : to_text(report)).c_str(), stdout);
}

}  // namespace

void add_upcycle(CLI::App& app) {
  auto* const verb =
      app.add_subcommand("upcycle", "Start another scheme from a trained Pre-Norm model, with the same function");
  const auto arguments = std::make_shared<UpcycleArguments>();
  verb->add_option("PRE_CHECKPOINT", arguments->source, "A run directory (its latest) or a checkpoint, Pre-Norm")
      ->required();
  verb->add_option("OVERRIDES", arguments->overrides,
                   "key=value for the keys of engine, and of data: what both models are compared on");
  verb->add_option("--data", arguments->data,
                   "Files of held-out text or tokens to compare both on, instead of the run's (data.val)");
  verb->add_option("--to", arguments->scheme, "The residual scheme to continue with")->required();
  verb->add_option("-o,--out", arguments->out, "The folder to make, for init.from")->required();
  verb->add_flag("--overwrite", arguments->overwrite, "Replace an earlier one that stands there");
  verb->add_flag("--json", arguments->json, "One JSON object");
  verb->footer("Example: siamese upcycle runs/pre --to siamese -o runs/pre-siamese");
  verb->callback([arguments] { upcycle_run(*arguments); });
}

}  // namespace siamese::cli

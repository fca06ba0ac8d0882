#include <cstdio>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/eval/probe.h"
#include "siamese/formats/convert.h"
#include "siamese/io/result_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/models/registry.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/device.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;

struct ProbeArguments {
  std::string subject;
  std::vector<std::string> overrides;
  std::string inputs;
  std::string out;
  bool gradients = false;
  bool activations = false;
  bool in_double = false;
};

train::RunConfig config_of(const ProbeArguments& arguments) {
  if (arguments.subject.ends_with(io::kSafetensorsEnding)) {
    throw UsageError(arguments.subject +
                     ": weights without their config.yaml; `siamese convert` makes a folder of both");
  }
  if (!is_folder(arguments.subject)) {
    const train::RunConfig config = load_run_config(arguments.subject, arguments.overrides);
    if (!config.init.from.empty()) {
      throw UsageError("init.from: a config is probed with fresh weights; probe " + config.init.from + " itself");
    }
    return config;
  }
  return load_stored_config(arguments.subject, arguments.overrides);
}

// With and without --double it is the same model: the one a run would start from.
void round_to_float(const models::Model& model) {
  const c10::NoGradGuard no_grad;
  for (const auto& tensor : models::named_values(model.parameters())) tensor.value.copy_(tensor.value.to(at::kFloat));
}

// The result may replace an earlier one, but nothing that the probe reads, and nothing of the user's.
void check_out(const ProbeArguments& arguments) {
  std::error_code none;
  if (fs::equivalent(arguments.inputs, arguments.out, none)) {
    throw UsageError("--out: " + arguments.out + " is the file of inputs itself; choose another");
  }
  const bool in_checkpoint =
      is_folder(arguments.subject) &&
      fs::equivalent(fs::absolute(arguments.out).parent_path(), io::resolve_checkpoint(arguments.subject), none);
  if (in_checkpoint) {
    throw UsageError("--out: " + arguments.out + " lies in the checkpoint that is probed; choose another place");
  }
  io::check_result_file(arguments.out, "result of a probe", io::holds_tensor("loss"));
}

void probe_model(const ProbeArguments& arguments) {
  check_out(arguments);
  train::RunConfig config = config_of(arguments);
  const models::Inputs inputs = eval::probe_inputs(io::TensorFiles::open(arguments.inputs), config.model);
  if (arguments.in_double) config.engine.ops = ops::Mode::plain;
  train::apply_engine(config.engine);
  warn_of_slow_precision(config.engine);
  const auto dtype = arguments.in_double ? at::kDouble : at::kFloat;
  const int64_t tokens = inputs.tokens.defined() ? inputs.tokens.size(1) : 0;
  std::unique_ptr<models::Model> model;
  std::string origin;
  if (is_folder(arguments.subject)) {
    train::LoadedModel loaded =
        train::load_model(arguments.subject, train::Weights::trained, dtype, tokens, train::device_of(config.engine));
    model = std::move(loaded.model);
    origin = loaded.checkpoint.string();
  } else {
    if (config.model.positions == models::Positions::rope) {
      config.model.context = std::max(config.model.context, tokens);
    }
    model = models::make_model(config.model, config.init, config.train.seed, train::device_of(config.engine), dtype);
    round_to_float(*model);
    origin = fmt::format("{}, fresh weights of train.seed {}", arguments.subject, config.train.seed);
  }
  const auto tensors = eval::probe(*model, inputs, {arguments.gradients, arguments.activations});
  // As a checkpoint's, so that `convert` can give the gradients others' names.
  models::save_tensors(arguments.out, tensors, formats::metadata_of(formats::Layout::siamese, config.model));
  std::printf("%s: %s, %s, %lld parameters\n", origin.c_str(), config.model.residual.c_str(),
              arguments.in_double ? "float64, plain expressions" : "float32",
              static_cast<long long>(model->parameters().count()));
  for (const auto& tensor : tensors) {
    if (tensor.value.dim() == 0) std::printf("%s %.9g\n", tensor.name.c_str(), tensor.value.item<double>());
  }
  std::printf("%zu tensors in %s\n", tensors.size(), arguments.out.c_str());
}

}  // namespace

void add_probe(CLI::App& app) {
  auto* const verb = app.add_subcommand(
      "probe", "One forward pass (and backward) on given tensors, to compare with another implementation");
  const auto arguments = std::make_shared<ProbeArguments>();
  verb->add_option("CHECKPOINT_OR_CONFIG", arguments->subject,
                   "A run directory (its latest), a checkpoint, or a config (fresh weights)")
      ->required();
  verb->add_option("OVERRIDES", arguments->overrides,
                   "key=value, with a config; with a checkpoint for the keys of engine");
  verb->add_option("--inputs", arguments->inputs,
                   "safetensors. lm, moe: tokens [B,T]; vit: images, labels; dit: latents, timesteps, labels, target")
      ->required();
  verb->add_option("-o,--out", arguments->out, "The safetensors file to write: output, loss, ...")->required();
  verb->add_flag("--grad", arguments->gradients, "grad/<parameter> of the loss, for every parameter");
  verb->add_flag("--activations", arguments->activations, "Streams and branches at every site: site/<i>/...");
  verb->add_flag("--double", arguments->in_double, "Compute and store float64, on the plain path");
  verb->footer("Example: siamese probe runs/x --inputs in.safetensors --grad --double --out out.safetensors");
  verb->callback([arguments] { probe_model(*arguments); });
}

}  // namespace siamese::cli

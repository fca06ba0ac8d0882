// Models of every family for Python: fresh, loaded and saved.
#include <cmath>

#include "python/binding/binding.h"
#include "python/binding/configs.h"
#include "python/binding/engine_model.h"
#include "python/binding/python_scheme.h"

#include "siamese/base/check.h"
#include "siamese/models/registry.h"
#include "siamese/models/rope_scaling.h"
#include "siamese/nn/expect.h"
#include "siamese/train/checkpoint.h"

namespace siamese::python {
namespace {

using NamedTensors = std::vector<std::tuple<std::string, std::optional<std::string>, at::Tensor>>;

// (name, kind, value); without a kind it is a buffer.
NamedTensors tensors_of(const models::Model& model) {
  NamedTensors list;
  for (const auto& parameter : model.parameters().list()) {
    list.emplace_back(parameter.name, std::string(enum_text(parameter.kind)), parameter.value.detach());
  }
  for (const auto& buffer : model.parameters().buffers()) list.emplace_back(buffer.name, std::nullopt, buffer.value);
  return list;
}

NamedTensors fresh_model(const std::string& text, py::object verbs) {
  const PythonSchemeGuard scheme(std::move(verbs));
  const py::gil_scoped_release others_go_on;
  const train::RunConfig config = stored_config(text);
  if (!config.init.from.empty()) {
    throw UsageError("init.from: expected nothing for a model with fresh weights, got " + config.init.from +
                     ": siamesenorm.load reads it");
  }
  return tensors_of(*models::make_model(config.model, config.init, config.train.seed));
}

std::tuple<std::string, NamedTensors, int64_t, std::vector<double>> load_model(const std::string& path, bool averaged) {
  const auto loaded = train::load_model(path, averaged ? train::Weights::averaged : train::Weights::trained, at::kFloat,
                                        0, at::Device(at::kCPU));
  return {train::config_text(loaded.config), tensors_of(*loaded.model), loaded.step, loaded.branch_scales};
}

void save_model(const std::string& text, const TensorsByName& tensors, const std::string& folder, bool overwrite) {
  const train::RunConfig config = stored_config(text);
  for (const auto& [name, value] : tensors) {
    if (!value.defined() || !value.device().is_cpu() || !value.is_contiguous()) {
      throw UsageError(name + ": expected a contiguous tensor on the CPU");
    }
  }
  const auto model = models::make_model(config.model, config.init, nn::Parameters(tensors));
  train::save_weights(folder, config, *model, overwrite);
}

std::unique_ptr<EngineModel> bound_model(const std::string& config, int64_t least_context, py::object verbs,
                                         const std::vector<double>& branch_scales) {
  const PythonSchemeGuard scheme(std::move(verbs));
  return std::make_unique<EngineModel>(config, least_context, branch_scales);
}

double weight_of(const std::string& name, double value) {
  if (std::isfinite(value)) return value;
  throw UsageError(name + ": expected a finite number, got " + std::to_string(value));
}

models::LossOptions loss_options(int64_t recompute, bool training, uint64_t seed,
                                 const std::map<std::string, double>& terms) {
  models::LossOptions options;
  if (recompute < 0) throw UsageError("recompute: expected 0 or more blocks, got " + std::to_string(recompute));
  options.stack.recompute_every = recompute;
  options.training = training;
  options.seed = seed;
  for (const auto& [name, value] : terms) {
    double* const place = name == "z_loss"          ? &options.z_loss
                          : name == "balance_loss"  ? &options.balance_loss
                          : name == "router_z_loss" ? &options.router_z_loss
                                                    : nullptr;
    if (place == nullptr) {
      throw UsageError("terms: expected z_loss, balance_loss or router_z_loss, got " + name);
    }
    *place = weight_of(name, value);
  }
  return options;
}

TensorsByName losses(const EngineModel& model, const Tensors& parameters, const TensorsByName& buffers,
                     const at::Tensor& x, const MaybeTensor& labels, const MaybeTensor& weights,
                     const MaybeTensor& targets, uint64_t position, uint64_t seed, int64_t recompute, bool training,
                     const std::map<std::string, double>& terms) {
  models::Inputs inputs;
  inputs.tokens = x;
  inputs.images = x;
  inputs.labels = labels.value_or(at::Tensor());
  inputs.weights = weights.value_or(at::Tensor());
  inputs.targets = targets.value_or(at::Tensor());
  inputs.first_position = position;
  const auto made = model.losses(parameters, buffers, inputs, loss_options(recompute, training, seed, terms));
  TensorsByName result = {{"objective", made.objective}, {"loss", made.loss}};
  for (const auto& [name, value] : made.extra) result[name] = value;
  if (made.expert_counts.defined()) result["expert_counts"] = made.expert_counts;
  return result;
}

std::vector<std::vector<int64_t>> generate(const EngineModel& model, const Tensors& parameters,
                                           const TensorsByName& buffers,
                                           const std::vector<std::vector<int64_t>>& prompts, int64_t max_tokens,
                                           double temperature, int64_t top_k, double top_p, uint64_t seed,
                                           const std::optional<int64_t>& stop) {
  return model.generate(parameters, buffers, prompts, {max_tokens, temperature, top_k, top_p, seed, stop});
}

// Of rotary positions under model.rope_scaling, and what cos and sin are multiplied by.
std::pair<std::vector<double>, double> rope_frequencies(int64_t head_dim, double theta, const std::string& scaling) {
  constexpr int64_t kMostHeadDim = int64_t{1} << 20;
  nn::expect_that(head_dim >= 2 && head_dim <= kMostHeadDim && head_dim % 2 == 0, "head_dim",
                  "an even number from 2 to " + std::to_string(kMostHeadDim), head_dim);
  if (!(theta > 0 && std::isfinite(theta))) {
    throw UsageError("rope_theta: expected a number > 0, got " + std::to_string(theta));
  }
  const nn::RopeScaling read = models::rope_scaling_of(scaling);
  return {nn::rotary_frequencies(head_dim, theta, read), nn::rotary_magnitude(read)};
}

}  // namespace

void add_models(py::module_& module) {
  using no_gil = py::call_guard<py::gil_scoped_release>;
  py::class_<EngineModel>(module, "EngineModel")
      .def(py::init(&bound_model), py::arg("config"), py::arg("least_context"), py::arg("verbs") = py::none(),
           py::arg("branch_scales") = std::vector<double>())
      .def("forward", &EngineModel::forward, py::arg("parameters"), py::arg("buffers"), py::arg("x"),
           py::arg("timesteps"), py::arg("labels"), no_gil())
      .def("hidden", &EngineModel::hidden, py::arg("parameters"), py::arg("buffers"), py::arg("x"), no_gil())
      .def("losses", &losses, py::arg("parameters"), py::arg("buffers"), py::arg("x"), py::arg("labels"),
           py::arg("weights"), py::arg("targets"), py::arg("position"), py::arg("seed"), py::arg("recompute"),
           py::arg("training"), py::arg("terms"), no_gil())
      .def("generate", &generate, py::arg("parameters"), py::arg("buffers"), py::arg("prompts"), py::arg("max_tokens"),
           py::arg("temperature"), py::arg("top_k"), py::arg("top_p"), py::arg("seed"), py::arg("stop"), no_gil());
  module.def("rope_frequencies", &rope_frequencies, py::arg("head_dim"), py::arg("theta"), py::arg("scaling"));
  module.def("fresh_model", &fresh_model, py::arg("text"), py::arg("verbs") = py::none());
  module.def("load_model", &load_model, py::arg("path"), py::arg("averaged"), no_gil());
  module.def("save_model", &save_model, py::arg("text"), py::arg("tensors"), py::arg("folder"), py::arg("overwrite"),
             no_gil());
}

}  // namespace siamese::python

#include "siamese/eval/probe.h"

#include <functional>
#include <limits>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"

namespace siamese::eval {
namespace {

constexpr int64_t kAny = -1;  // a dimension that the inputs choose

// One tensor that the family takes.
struct Wanted {
  std::string name;
  at::Tensor models::Inputs::*place;
  std::vector<int64_t> shape;  // the first is the batch
  int64_t below = 0;           // whole numbers in [0, below); 0: floating point
};

std::vector<Wanted> wanted_of(const models::ModelConfig& config) {
  using models::Inputs;
  const int64_t image = config.image;
  const int64_t out_channels = config.channels * (config.learn_sigma ? 2 : 1);
  const int64_t label_rows = config.classes + (config.label_dropout > 0 ? 1 : 0);
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  switch (config.family) {
    case models::Family::vit:
      return {{"images", &Inputs::images, {kAny, config.channels, image, image}},
              {"labels", &Inputs::labels, {kAny}, config.classes}};
    case models::Family::dit:
      return {{"latents", &Inputs::images, {kAny, config.channels, image, image}},
              {"timesteps", &Inputs::timesteps, {kAny}, kNoLimit},
              {"labels", &Inputs::labels, {kAny}, label_rows},
              {"target", &Inputs::targets, {kAny, out_channels, image, image}}};
    case models::Family::lm:
    case models::Family::moe:
      break;
  }
  return {{"tokens", &Inputs::tokens, {kAny, kAny}, config.vocab}};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(size == kAny ? "any" : std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

bool same_shape(const at::Tensor& tensor, const std::vector<int64_t>& shape) {
  if (tensor.dim() != static_cast<int64_t>(shape.size()) || tensor.numel() == 0) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != kAny && shape[i] != tensor.size(static_cast<int64_t>(i))) return false;
  }
  return true;
}

// What is wrong with a tensor; "" when nothing is.
std::string fault_of(const at::Tensor& given, const Wanted& wanted) {
  const bool whole = wanted.below > 0;
  if (whole ? given.scalar_type() != at::kLong : !at::isFloatingType(given.scalar_type())) {
    return fmt::format("expected {}, got {}", whole ? "int64" : "floating point", c10::toString(given.scalar_type()));
  }
  if (!same_shape(given, wanted.shape)) {
    return fmt::format("expected {}, not empty, got {}", shape_text(wanted.shape), shape_text(given.sizes().vec()));
  }
  if (!whole) return "";
  const auto least = given.min().item<int64_t>();
  const auto largest = given.max().item<int64_t>();
  if (least >= 0 && largest < wanted.below) return "";
  return fmt::format("expected numbers from 0 to {}, got {}", wanted.below - 1, least < 0 ? least : largest);
}

class Record : public residual::Recorder {
 public:
  void stream(const residual::Site& site, const std::string& name, const at::Tensor& before,
              const at::Tensor& after) override {
    add(site, "stream/" + name, before);
    if (after.defined()) add(site, "stream_normed/" + name, after);
  }
  void branch(const residual::Site& site, const at::Tensor& input, const at::Tensor& output) override {
    add(site, "branch_in", input);
    add(site, "branch_out", output);
  }
  const std::vector<models::NamedTensor>& tensors() const { return tensors_; }

 private:
  void add(const residual::Site& site, const std::string& what, const at::Tensor& value) {
    tensors_.push_back({fmt::format("site/{}/{}", site.index, what), value.detach()});
  }
  std::vector<models::NamedTensor> tensors_;
};

}  // namespace

models::Inputs probe_inputs(const io::TensorFiles& files, const models::ModelConfig& config) {
  const std::vector<Wanted> list = wanted_of(config);
  models::Inputs inputs;
  std::vector<std::string> faults;
  int64_t batch = 0;
  for (const Wanted& wanted : list) {
    const io::TensorView* const view = files.find(wanted.name);
    if (view == nullptr) {
      faults.push_back("missing " + wanted.name + " " + shape_text(wanted.shape));
      continue;
    }
    const at::Tensor given = models::as_tensor(*view).clone();  // of its own: the file may go away
    std::string fault = fault_of(given, wanted);
    if (fault.empty() && batch == 0) batch = given.size(0);
    if (fault.empty() && given.size(0) != batch) {
      fault = fmt::format("expected as many rows as {} has ({}), got {}", list.front().name, batch, given.size(0));
    }
    if (fault.empty() && wanted.name == "tokens") {
      const bool bounded = config.positions == models::Positions::learned;
      if (given.size(1) < 2) fault = "expected at least two tokens a row: a loss needs a next one";
      if (bounded && given.size(1) > config.context) {
        fault = fmt::format("expected at most model.context = {} tokens a row, got {}", config.context, given.size(1));
      }
    }
    if (!fault.empty()) faults.push_back(wanted.name + ": " + fault);
    inputs.*wanted.place = given;
  }
  for (const auto& view : files.tensors()) {
    const bool known =
        std::any_of(list.begin(), list.end(), [&](const Wanted& wanted) { return wanted.name == view.name; });
    if (!known) faults.push_back("unknown " + view.name);
  }
  if (!faults.empty()) {
    throw DataError(fmt::format("{}: does not fit a model of family {}: {}", files.path().string(),
                                enum_text(config.family), join(faults, "; ")));
  }
  return inputs;
}

std::vector<models::NamedTensor> probe(const models::Model& model, const models::Inputs& inputs,
                                       const ProbeOptions& options) {
  const c10::AutoGradMode with_gradients(options.gradients);
  Record record;
  const models::Pass pass = model.pass(inputs, {.recorder = options.activations ? &record : nullptr});
  std::vector<models::NamedTensor> results = {{"output", pass.output}, {"loss", pass.loss.detach()}};
  for (const auto& [name, value] : pass.aux) results.push_back({"aux/" + name, value.detach()});
  if (options.gradients) {
    model.parameters().zero_grad();
    pass.loss.backward();
    for (const auto& parameter : model.parameters().list()) {
      const at::Tensor& gradient = parameter.value.grad();
      results.push_back({"grad/" + parameter.name, gradient.defined() ? gradient : at::zeros_like(parameter.value)});
    }
  }
  results.insert(results.end(), record.tensors().begin(), record.tensors().end());
  return results;
}

}  // namespace siamese::eval

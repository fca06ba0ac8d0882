#include "python/binding/engine_model.h"

#include <algorithm>
#include <cmath>

#include "python/binding/configs.h"
#include "python/binding/python_scheme.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/eval/generate.h"
#include "siamese/models/dit.h"
#include "siamese/models/lm.h"
#include "siamese/models/registry.h"
#include "siamese/models/vit.h"
#include "siamese/nn/expect.h"

namespace siamese::python {
namespace {

using models::Family;

void expect_floats(const char* what, const at::Tensor& got) {
  if (got.defined() && got.is_floating_point()) return;
  throw UsageError(std::string(what) + ": expected a floating-point tensor, got " +
                   (got.defined() ? c10::toString(got.scalar_type()) : "none"));
}

const at::Tensor& wanted(const char* what, const MaybeTensor& given) {
  if (!given || !given->defined()) throw UsageError(std::string(what) + ": expected a tensor, got none");
  return *given;
}

void expect_none(const char* what, const MaybeTensor& given, Family family) {
  if (given)
    throw UsageError(std::string(what) + ": a model of family " + std::string(enum_text(family)) + " has none");
}

}  // namespace

EngineModel::EngineModel(const std::string& config, int64_t least_context, const std::vector<double>& branch_scales)
    : config_(stored_config(config).model) {
  constexpr int64_t kMostContext = int64_t{1} << 24;
  nn::expect_that(least_context >= 0 && least_context <= kMostContext, "context",
                  "0 to " + std::to_string(kMostContext), least_context);
  if (least_context > config_.context) {
    if (config_.positions != models::Positions::rope) {
      throw UsageError("context: expected at most " + std::to_string(config_.context) +
                       ", as the model's positions are learned, got " + std::to_string(least_context));
    }
    config_.context = least_context;
  }
  const auto scales = static_cast<int64_t>(branch_scales.size());
  nn::expect_that(scales == 0 || scales == config_.blocks, "branch_scales",
                  "none or one for each of " + std::to_string(config_.blocks) + " blocks", scales);
  config_.branch_scales = branch_scales;
  model_ = models::make_model(config_, {}, 0, at::kMeta);
}

// The engine's slots give the caller's tensors on this thread.
template <class Run>
auto EngineModel::with(const Tensors& parameters, const TensorsByName& buffers, Run run) const {
  for (const auto& parameter : parameters) expect_floats("parameters", parameter);
  {
    const std::lock_guard one_at_a_time(buffers_mutex_);
    for (const auto& [name, value] : buffers) {
      bool held = false;
      for (const auto& buffer : model_->parameters().buffers()) {
        held = held || (buffer.name == name && buffer.value.is_same(value));
      }
      if (!held) model_->parameters().set(name, value);
    }
  }
  const nn::ParameterGuard guard(model_->parameters(), parameters);
  return run();
}

at::Tensor EngineModel::hidden(const Tensors& parameters, const TensorsByName& buffers, const at::Tensor& x) const {
  return with(parameters, buffers, [&] {
    if (const auto* lm = dynamic_cast<const models::LanguageModel*>(model_.get())) return lm->hidden(x);
    if (const auto* vit = dynamic_cast<const models::VisionTransformer*>(model_.get())) {
      expect_floats("images", x);
      return vit->features(x);
    }
    throw UsageError("hidden: expected a model of family lm, moe or vit, got dit");
  });
}

at::Tensor EngineModel::forward(const Tensors& parameters, const TensorsByName& buffers, const at::Tensor& x,
                                const MaybeTensor& timesteps, const MaybeTensor& labels) const {
  if (config_.family != Family::dit) {
    expect_none("timesteps", timesteps, config_.family);
    expect_none("labels", labels, config_.family);
  }
  return with(parameters, buffers, [&] {
    if (const auto* lm = dynamic_cast<const models::LanguageModel*>(model_.get())) return lm->logits(lm->hidden(x));
    expect_floats("images", x);
    if (const auto* vit = dynamic_cast<const models::VisionTransformer*>(model_.get())) {
      return vit->logits(vit->features(x));
    }
    const auto& dit = dynamic_cast<const models::DiffusionTransformer&>(*model_);
    return dit.output(x, wanted("timesteps", timesteps), wanted("labels", labels));
  });
}

// What a mean is over: counted targets, or samples.
double EngineModel::targets_of(const models::Inputs& inputs) const {
  if (config_.sees_images()) {
    expect_floats("images", inputs.images);
    return static_cast<double>(std::max<int64_t>(inputs.images.dim() > 0 ? inputs.images.size(0) : 1, 1));
  }
  if (inputs.weights.defined()) {
    expect_floats("weights", inputs.weights);
    const double counted = inputs.weights.sum().item<double>();
    if (!(counted > 0)) throw UsageError("weights: expected a sum above 0, got " + std::to_string(counted));
    return counted;
  }
  nn::expect_indices("tokens", inputs.tokens, {-1, -1}, config_.vocab);
  return static_cast<double>(std::max<int64_t>(inputs.tokens.size(0) * (inputs.tokens.size(1) - 1), 1));
}

models::Losses EngineModel::losses(const Tensors& parameters, const TensorsByName& buffers,
                                   const models::Inputs& inputs, models::LossOptions options) const {
  if (options.stack.recompute_every > 0 && config_.residual == kPythonScheme) {
    throw UsageError("recompute: expected 0 for a scheme in Python, whose parameters the engine does not know, got " +
                     std::to_string(options.stack.recompute_every));
  }
  options.normalizer = targets_of(inputs);
  return with(parameters, buffers, [&] { return model_->losses(inputs, options); });
}

std::vector<std::vector<int64_t>> EngineModel::generate(const Tensors& parameters, const TensorsByName& buffers,
                                                        const std::vector<std::vector<int64_t>>& prompts,
                                                        const Asked& asked) const {
  const auto* const lm = dynamic_cast<const models::LanguageModel*>(model_.get());
  if (lm == nullptr) {
    throw UsageError("generate: expected a model of family lm or moe, got " + std::string(enum_text(config_.family)));
  }
  const auto most = static_cast<double>(int64_t{1} << 40);
  nn::expect_that(asked.max_tokens >= 1 && static_cast<double>(asked.max_tokens) <= most, "max_tokens", "1 or more",
                  asked.max_tokens);
  nn::expect_that(asked.top_k >= 0, "top_k", "0 or more", asked.top_k);
  if (!(std::isfinite(asked.temperature) && asked.temperature >= 0)) {
    throw UsageError("temperature: expected a number from 0, got " + std::to_string(asked.temperature));
  }
  if (!(asked.top_p > 0 && asked.top_p <= 1)) {
    throw UsageError("top_p: expected a number above 0, up to 1, got " + std::to_string(asked.top_p));
  }
  const eval::Sampling sampling{asked.max_tokens, asked.temperature, asked.top_k, asked.top_p, asked.seed};
  std::vector<std::vector<int64_t>> made(prompts.size());
  if (prompts.empty()) return made;
  return with(parameters, buffers, [&] {
    const c10::NoGradGuard no_grad;
    eval::generate(*lm, prompts, sampling, [&](size_t sequence, int64_t token) {
      if (asked.stop == token) return false;
      made[sequence].push_back(token);
      return true;
    });
    return made;
  });
}

}  // namespace siamese::python

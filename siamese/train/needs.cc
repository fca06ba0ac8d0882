#include "siamese/train/needs.h"

#include <algorithm>
#include <numeric>

#include <ATen/core/Tensor.h>

#include "siamese/models/blocks.h"
#include "siamese/models/lm.h"
#include "siamese/models/pass_memory.h"
#include "siamese/models/registry.h"
#include "siamese/train/freeze.h"
#include "siamese/train/optimizer.h"
#include "siamese/train/record_facts.h"
#include "siamese/train/weight_parts.h"

namespace siamese::train {
namespace {

plan::PassBytes pass_bytes(const RunConfig& config, int64_t recompute_every) {
  const auto peak = [&](int64_t rows) {
    return static_cast<double>(
        models::pass_memory(config.model, rows, recompute_every, config.engine.precision).peak_bytes);
  };
  const double one = peak(1), two = peak(2);
  return {.fixed = 2 * one - two, .each_row = two - one};
}

// What the products read: matrices, and the table that is the head.
double operand_elements(const models::ModelConfig& config, const nn::Parameters& parameters) {
  const bool tied = !config.sees_images() && config.tied;
  return models::matrix_elements(parameters) + (tied ? static_cast<double>(config.vocab * config.width) : 0);
}

int64_t key_value_bytes(const models::Model& model, const models::ModelConfig& config) {
  const auto* const text = dynamic_cast<const models::LanguageModel*>(&model);
  if (text == nullptr) return 0;
  int64_t bytes = 0;
  for (const auto& layer : text->make_cache(1, config.context).layers) {
    bytes += static_cast<int64_t>(layer.keys.nbytes() + layer.values.nbytes());
  }
  return bytes;
}

}  // namespace

Needs needs_of(const RunConfig& config) {
  const auto model = models::make_model(config.model, config.init, 0, at::kMeta);
  const nn::Parameters& parameters = model->parameters();
  freeze(config.optim.freeze, parameters);
  Needs needs;
  needs.parameters_by_part = models::count_by_part(parameters);
  needs.parameters = parameters.count();
  needs.active_parameters = model->active_parameters();
  const auto context = static_cast<double>(config.model.context);
  needs.forward_flops_each_token = model->forward_flops(1) / context;
  needs.dense_forward_flops_each_token =
      needs.forward_flops_each_token + 2 * static_cast<double>(needs.parameters - needs.active_parameters);
  needs.step_flops = step_flops(*model, config);
  needs.tokens_each_step = static_cast<double>(config.train.batch) * context;
  needs.key_value_bytes = key_value_bytes(*model, config.model);

  plan::RunNeeds& run = needs.run;
  run.weights = static_cast<double>(needs.parameters);
  for (const auto& parameter : parameters.list()) {
    if (parameter.value.requires_grad()) run.trained += static_cast<double>(parameter.value.numel());
  }
  run.moments = numbers_kept(config.optim, parameters) - run.weights - run.trained;
  run.averages = config.train.ema > 0 ? run.weights : 0;
  run.copies_to_save = config.train.save_in_background;
  const std::vector<int64_t> blocks = models::count_by_block(parameters);
  run.blocks = static_cast<int64_t>(blocks.size());
  run.largest_block = static_cast<double>(*std::max_element(blocks.begin(), blocks.end()));
  run.outside_blocks = run.weights - static_cast<double>(std::accumulate(blocks.begin(), blocks.end(), int64_t{0}));
  if (config.engine.precision == ops::Precision::bfloat16) {
    run.operand_bytes = 2;
    run.rounded_weight_bytes = run.operand_bytes * operand_elements(config.model, parameters);
    for (const auto& parameter : parameters.list()) {
      const bool shared_out = divides_operands(config.engine) && parameter.value.requires_grad();
      if (shared_out && models::is_operand_alone(parameter)) {
        run.read_rounded += static_cast<double>(parameter.value.numel());
      }
    }
  }
  run.batch = config.train.batch;
  run.steps = config.train.steps;
  run.forward_flops_each_sample = model->forward_flops(1);
  run.update_flops = optimizer_flops(config.optim, parameters);
  run.kept = pass_bytes(config, 0);
  run.recomputed = pass_bytes(config, std::max<int64_t>(1, config.engine.recompute));
  run.micro_batch = config.train.micro_batch;
  return needs;
}

}  // namespace siamese::train

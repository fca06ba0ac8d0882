#include "siamese/models/dit.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/base/random.h"
#include "siamese/nn/expect.h"
#include "siamese/ops/activation.h"
#include "siamese/ops/modulate.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/reduce.h"

namespace siamese::models {
namespace {

// int64 [rows]: one number for each sample, drawn from its position.
template <class Draw>
at::Tensor draw_each(int64_t rows, const Draw& draw) {
  at::Tensor values = at::empty({rows}, at::kLong);
  for (int64_t row = 0; row < rows; ++row) values.mutable_data_ptr<int64_t>()[row] = draw(row);
  return values;
}

// Drawn on the host, where the counter-based generator lives, and moved to the images.
at::Tensor noise_like(const at::Tensor& images, uint64_t seed, uint64_t first_position) {
  const at::Tensor noise = at::empty(images.sizes(), at::kFloat);
  const int64_t each = images.numel() / std::max<int64_t>(images.size(0), 1);
  float* const data = noise.mutable_data_ptr<float>();
  at::parallel_for(0, noise.numel(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      data[i] = static_cast<float>(
          random_normal(seed, first_position + static_cast<uint64_t>(i / each), static_cast<uint64_t>(i % each)));
    }
  });
  return noise.to(images.options());
}

}  // namespace

DiffusionTransformer::DiffusionTransformer(const ModelConfig& config, const nn::InitConfig& init,
                                           nn::Parameters parameters)
    : Model(std::move(parameters)), config_(config) {
  const nn::Scope root = root_scope();
  const nn::Initializer initializer(init, config.width, config.blocks);
  const int64_t patch_in = config.channels * config.patch * config.patch;
  const nn::Init table = nn::Init::normal(0.02, 0);
  patches_ = nn::PatchEmbed(root.child("patch"), config.channels, config.patch, config.width,
                            initializer.input_projection(patch_in, config.width), nn::Init::zeros());
  positions_ =
      root.child("positions")
          .add_buffer("weight", nn::sincos_positions(config.width, config.grid(), this->parameters().options()));
  timesteps_ = nn::TimestepEmbedding(root.child("timestep"), config.width);
  const int64_t label_rows = config.classes + (config.label_dropout > 0 ? 1 : 0);
  labels_ = nn::Embedding(root.child("labels"), label_rows, config.width, table);
  stack_ = make_stack(root, config);
  blocks_ = std::make_shared<const Blocks>(root, *stack_, config, initializer);
  for (int64_t block = 0; block < config.blocks; ++block) {
    const nn::Scope scope = root.child("blocks").child(std::to_string(block)).child("modulation");
    modulations_.emplace_back(scope, config.width, 6 * config.width, true, nn::Init::zeros(),
                              std::vector<int64_t>(6, config.width));
  }
  nn::NormSpec plain_norm = config.norm_spec();
  plain_norm.affine = false;
  const nn::Scope last = root.child("final");
  final_norm_ = nn::Norm(last.child("norm"), config.width, plain_norm);
  final_modulation_ = nn::Linear(last.child("modulation"), config.width, 2 * config.width, true, nn::Init::zeros(),
                                 {config.width, config.width});
  final_ = nn::Linear(last.child("out"), config.width, config.patch * config.patch * out_channels(), true,
                      nn::Init::zeros(), /*matrices=*/{});
}

at::Tensor DiffusionTransformer::output(const at::Tensor& x, const at::Tensor& timesteps, const at::Tensor& labels,
                                        const StackOptions& options) const {
  return output(x, timesteps, labels, options, {});
}

at::Tensor DiffusionTransformer::output(const at::Tensor& x, const at::Tensor& timesteps, const at::Tensor& labels,
                                        const StackOptions& options, const Dropping& dropping) const {
  nn::expect_shape("images", x, {-1, config_.channels, config_.image, config_.image});
  const at::Tensor condition = this->condition(timesteps, labels, x.size(0));
  return output_of(final_state(x, condition, options, dropping), condition);
}

at::Tensor DiffusionTransformer::state(const Inputs& inputs, const StackOptions& options) const {
  nn::expect_shape("images", inputs.images, {-1, config_.channels, config_.image, config_.image});
  return final_state(inputs.images, condition(inputs.timesteps, inputs.labels, inputs.images.size(0)), options, {});
}

at::Tensor DiffusionTransformer::read_out(const at::Tensor& state, const Inputs& inputs) const {
  return output_of(state, condition(inputs.timesteps, inputs.labels, state.size(0)));
}

at::Tensor DiffusionTransformer::condition(const at::Tensor& timesteps, const at::Tensor& labels, int64_t batch) const {
  nn::expect_indices("timesteps", timesteps, {batch}, diffusion_.steps());
  nn::expect_indices("labels", labels, {batch}, labels_.weight().value().size(0));
  return ops::silu(timesteps_(timesteps) + labels_(labels.to(parameters().options().device())));
}

at::Tensor DiffusionTransformer::final_state(const at::Tensor& x, const at::Tensor& condition,
                                             const StackOptions& options, const Dropping& dropping) const {
  const at::TensorOptions here = parameters().options();
  const at::Tensor embedded = patches_(x.to(here)) + positions_.value().to(here);
  std::vector<at::Tensor> of_blocks;
  for (const auto& modulation : modulations_) of_blocks.push_back(modulation(condition));
  // A recorder and an intervention want floats, as everywhere (Stack::rounds_input).
  const bool observed = options.recorder != nullptr || options.intervention != nullptr;
  const auto sublayer = [blocks = blocks_, dropping, watch = options.watch, observed](
                            const residual::Site& site, const at::Tensor& read,
                            const std::vector<at::Tensor>& conditions, const std::vector<at::Tensor>& carry) {
    // Shift, scale, gate of attention, then of the feed-forward.
    const auto vectors = conditions[static_cast<size_t>(site.block)].chunk(6, 1);
    const size_t first = site.kind == residual::SiteKind::attention ? 0 : 3;
    const bool half = !observed && ops::rounds_operand(read);
    const at::Tensor input = ops::modulate(read, vectors[first], vectors[first + 1], half);
    SublayerOutput result = (*blocks)(site, input, {.dropping = dropping, .watch = watch}, carry);
    result.branch.gate = vectors[first + 2].unsqueeze(1);
    result.input = input;
    return result;
  };
  return (*stack_)(dropping.embedding()(embedded), sublayer, options, of_blocks).hidden;
}

at::Tensor DiffusionTransformer::output_of(const at::Tensor& state, const at::Tensor& condition) const {
  const auto last = final_modulation_(condition).chunk(2, 1);
  const at::Tensor modulated =
      ops::modulate(final_norm_(state), last[0], last[1], /*half_output=*/ops::rounds_operand(state));
  return nn::images_of(final_.rounded(modulated), config_.patch, out_channels());
}

NoisedImages draw_noised(const Diffusion& diffusion, const at::Tensor& images, uint64_t first_position, uint64_t seed) {
  const uint64_t step_seed = seed ^ hash_text("dit.timestep");
  NoisedImages drawn;
  drawn.timesteps = draw_each(images.size(0), [&](int64_t row) {
    return static_cast<int64_t>(random_below(static_cast<uint64_t>(diffusion.steps()), step_seed,
                                             first_position + static_cast<uint64_t>(row), 0));
  });
  drawn.noise = noise_like(images, seed ^ hash_text("dit.noise"), first_position);
  drawn.noised = diffusion.noised(images, drawn.timesteps, drawn.noise);
  return drawn;
}

Losses DiffusionTransformer::losses(const Inputs& inputs, const LossOptions& options) const {
  nn::expect_shape("images", inputs.images, {-1, config_.channels, config_.image, config_.image});
  const int64_t rows = inputs.images.size(0);
  nn::expect_indices("labels", inputs.labels, {rows}, config_.classes);
  const at::Tensor images = inputs.images.to(parameters().options());
  const auto position = [&](int64_t row) { return inputs.first_position + static_cast<uint64_t>(row); };
  const auto [timesteps, noise, noised] = draw_noised(diffusion_, images, inputs.first_position, options.seed);
  at::Tensor labels = inputs.labels;
  if (options.training && config_.label_dropout > 0) {
    const uint64_t seed = options.seed ^ hash_text("dit.label");
    const at::Tensor hidden = draw_each(
        rows, [&](int64_t row) { return random_uniform(seed, position(row), 0) < config_.label_dropout ? 1 : 0; });
    labels = labels.masked_fill(hidden.to(labels.device(), at::kBool), null_label());
  }
  const Dropping dropping = dropping_of(config_, inputs, options);
  const at::Tensor predicted = output(noised, timesteps, labels, options.stack, dropping);
  const DiffusionTerms terms = diffusion_.losses(predicted, images, noised, timesteps, noise, config_.learn_sigma);
  const at::Tensor mse = ops::fixed_sum(terms.mse) / options.normalizer;
  Losses losses{.objective = mse, .loss = {}, .extra = {{"mse", mse.detach()}}, .expert_counts = {}};
  if (config_.learn_sigma) {
    const at::Tensor vlb = ops::fixed_sum(terms.vlb) / options.normalizer;
    losses.objective = mse + vlb;
    losses.extra.emplace_back("vlb", vlb.detach());
  }
  losses.loss = losses.objective.detach();
  return losses;
}

Pass DiffusionTransformer::pass(const Inputs& inputs, const StackOptions& options) const {
  const at::Tensor predicted = output(inputs.images, inputs.timesteps, inputs.labels, options);
  nn::expect_shape("targets", inputs.targets, predicted.sizes());
  const at::Tensor apart = predicted - inputs.targets.to(predicted.options());
  return {predicted.detach(), ops::fixed_sum(apart.square()) / static_cast<double>(apart.numel()), {}};
}

double DiffusionTransformer::forward_flops(int64_t batch) const {
  const auto tokens = static_cast<double>(config_.context);
  double every_sample = matrix_elements(parameters(), "timestep.") + matrix_elements(parameters(), "final.modulation.");
  for (const auto& modulation : modulations_) every_sample += static_cast<double>(modulation.weight().value().numel());
  const double every_token = matrix_elements(parameters()) - every_sample + depth_attention_products(config_);
  const double attention = 2 * static_cast<double>(config_.blocks * config_.width) * tokens * tokens;
  return 2 * static_cast<double>(batch) * (every_token * tokens + attention + every_sample);
}

int64_t DiffusionTransformer::block_of(const nn::Parameter& parameter) const {
  return parameter.name.find(".modulation.") == std::string::npos ? Model::block_of(parameter) : kNoBlock;
}

}  // namespace siamese::models

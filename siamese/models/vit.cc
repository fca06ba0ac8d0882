#include "siamese/models/vit.h"

#include <cmath>

#include <ATen/ATen.h>

#include "siamese/base/random.h"
#include "siamese/nn/expect.h"
#include "siamese/ops/embedding.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/row_linear.h"

namespace siamese::models {

VisionTransformer::VisionTransformer(const ModelConfig& config, const nn::InitConfig& init, nn::Parameters parameters)
    : Model(std::move(parameters)), config_(config) {
  const nn::Scope root = root_scope();
  const nn::Initializer initializer(init, config.width, config.blocks);
  const int64_t fan_in = config.channels * config.patch * config.patch;
  const nn::Init convolution = nn::Init::uniform(1 / std::sqrt(static_cast<double>(fan_in)));  // PyTorch's default
  patches_ = nn::PatchEmbed(root.child("patch"), config.channels, config.patch, config.width, convolution, convolution);
  class_token_ = root.add("class_token", nn::ParameterKind::embedding, {config.width}, initializer.embedding());
  positions_ =
      root.child("positions")
          .add("weight", nn::ParameterKind::embedding, {config.context, config.width}, initializer.embedding());
  stack_ = make_stack(root, config);
  blocks_ = std::make_shared<const Blocks>(root, *stack_, config, initializer);
  head_ = nn::Linear(root.child("head"), config.width, config.classes, true, initializer.head(), {});
}

at::Tensor VisionTransformer::DropPath::kept(const residual::Site& site, int64_t batch,
                                             const at::TensorOptions& streams) const {
  const double depth = site.blocks > 1 ? static_cast<double>(site.block) / static_cast<double>(site.blocks - 1) : 0;
  const double chance = last * depth;
  if (chance == 0) return {};
  const uint64_t key = seed ^ hash_text("drop_path");
  const at::Tensor mask = at::empty({batch, 1, 1}, at::kDouble);
  for (int64_t row = 0; row < batch; ++row) {
    const uint64_t position = first_position + static_cast<uint64_t>(row);
    const bool drops = random_uniform(key, position, static_cast<uint64_t>(site.index)) < chance;
    mask.mutable_data_ptr<double>()[row] = drops ? 0 : 1 / (1 - chance);
  }
  return mask.to(streams);
}

at::Tensor VisionTransformer::features(const at::Tensor& images, const StackOptions& options) const {
  return states(images, options, {}, {}).select(1, 0);
}

at::Tensor VisionTransformer::states(const at::Tensor& images, const StackOptions& options, const DropPath& path,
                                     const Dropping& dropping) const {
  nn::expect_shape("images", images, {-1, config_.channels, config_.image, config_.image});
  const int64_t batch = images.size(0);
  const at::Tensor first = ops::for_each_row(class_token_.value(), {batch, 1});
  const at::Tensor embedded =
      ops::add_to_each(at::cat({first, patches_(images.to(parameters().options()))}, 1), positions_.value());
  const auto sublayer = [blocks = blocks_, path, dropping, watch = options.watch, streams = embedded.options()](
                            const residual::Site& site, const at::Tensor& input, const std::vector<at::Tensor>&,
                            const std::vector<at::Tensor>& carry) {
    SublayerOutput output = (*blocks)(site, input, {.dropping = dropping, .watch = watch}, carry);
    output.branch.gate = path.kept(site, input.size(0), streams);
    return output;
  };
  return (*stack_)(dropping.embedding()(embedded), sublayer, options).hidden;
}

at::Tensor VisionTransformer::state(const Inputs& inputs, const StackOptions& options) const {
  return states(inputs.images, options, {}, {});
}

at::Tensor VisionTransformer::read_out(const at::Tensor& state, const Inputs&) const {
  return logits(state.select(1, 0));
}

at::Tensor VisionTransformer::logits(const at::Tensor& features) const { return head_.rounded(features.contiguous()); }

at::Tensor VisionTransformer::labels_of(const Inputs& inputs, const at::Tensor& output) const {
  nn::expect_indices("labels", inputs.labels, {output.size(0)}, config_.classes);
  return inputs.labels.to(output.device());
}

Losses VisionTransformer::losses(const Inputs& inputs, const LossOptions& options) const {
  const DropPath path{options.training ? config_.drop_path : 0, options.seed, inputs.first_position};
  const Dropping dropping = dropping_of(config_, inputs, options);
  const at::Tensor state = states(inputs.images, options.stack, path, dropping).select(1, 0);
  const at::Tensor log_shares = at::log_softmax(logits(state), -1);
  at::Tensor wanted;
  if (inputs.targets.defined()) {
    nn::expect_shape("targets", inputs.targets, {state.size(0), config_.classes});
    wanted = log_shares * inputs.targets.to(log_shares.options());
  } else {
    wanted = log_shares.gather(1, labels_of(inputs, log_shares).unsqueeze(1));
  }
  const at::Tensor loss = ops::fixed_sum(wanted) / -options.normalizer;
  return {.objective = loss, .loss = loss.detach(), .extra = {}, .expert_counts = {}};
}

Pass VisionTransformer::pass(const Inputs& inputs, const StackOptions& options) const {
  const at::Tensor output = logits(features(inputs.images, options));
  return {output.detach(), at::cross_entropy_loss(output, labels_of(inputs, output)), {}};
}

double VisionTransformer::forward_flops(int64_t batch) const {
  const auto tokens = static_cast<double>(config_.context);
  const double head = matrix_elements(parameters(), "head.");
  const double every_token = matrix_elements(parameters()) - head + depth_attention_products(config_);
  const double attention = 2 * static_cast<double>(config_.blocks * config_.width) * tokens * tokens;
  return 2 * static_cast<double>(batch) * (every_token * tokens + attention + head);
}

}  // namespace siamese::models

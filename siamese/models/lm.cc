#include "siamese/models/lm.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/head_loss.h"
#include "siamese/ops/linear.h"

namespace siamese::models {

LanguageModel::LanguageModel(const ModelConfig& config, const nn::InitConfig& init, nn::Parameters parameters)
    : Model(std::move(parameters)), config_(config) {
  const nn::Scope root = root_scope();
  const nn::Initializer initializer(init, config.width, config.blocks);
  embedding_ = nn::Embedding(root.child("embedding"), config.vocab, config.width, initializer.embedding());
  if (config.positions == Positions::learned) {
    positions_ = nn::Embedding(root.child("positions"), config.context, config.width, initializer.embedding());
  } else {
    rotary_ = nn::Rotary(config.context, config.width / config.heads, config.rope_theta, this->parameters().options());
  }
  stack_ = std::make_unique<Stack>(
      root, config.residual,
      residual::Build{.width = config.width, .blocks = config.blocks, .norm = config.norm_spec()});
  for (const auto& site : stack_->sites()) {
    const nn::Scope scope = root.child("blocks").child(std::to_string(site.block)).child(enum_text(site.kind));
    const nn::BranchInit branch_init = stack_->topology().branch_init(site);
    if (site.kind == residual::SiteKind::attention) {
      const nn::AttentionShape shape{config.width, config.heads, config.kv_heads, config.bias, config.norm_eps};
      attentions_.emplace_back(scope, shape, attention_norm(config, stack_->topology(), site), initializer, site.block,
                               branch_init);
    } else {
      const nn::FeedForwardShape shape{config.ffn, config.width, config.ffn_width, config.bias};
      feed_forwards_.emplace_back(scope, shape, initializer, site.block, branch_init);
    }
  }
  head_ = config.tied ? embedding_.weight()
                      : root.child("head").add("weight", nn::ParameterKind::linear, {config.vocab, config.width},
                                               initializer.head());
}

at::Tensor LanguageModel::hidden(const at::Tensor& tokens, const StackOptions& options, LmCache* cache) const {
  const int64_t count = tokens.size(1);
  const int64_t past = cache != nullptr ? cache->past : 0;
  SIAMESE_INVARIANT(past + count <= config_.context && (cache == nullptr || past + count <= cache->capacity));
  at::Tensor embedded = embedding_(tokens);
  nn::RotaryTables tables;
  const bool rope = config_.positions == Positions::rope;
  if (rope) {
    tables = rotary_.at(past, count);
  } else {
    embedded = embedded + positions_.weight().narrow(0, past, count);
  }
  const auto sublayer = [this, tables, rope, past, cache](const residual::Site& site, const at::Tensor& input) {
    const auto block = static_cast<size_t>(site.block);
    if (site.kind == residual::SiteKind::ffn) return residual::Branch{feed_forwards_[block](input), {}};
    nn::KeyValues* const held = cache != nullptr ? &cache->layers[block] : nullptr;
    return residual::Branch{attentions_[block](input, rope ? &tables : nullptr, past, held), {}};
  };
  at::Tensor result = (*stack_)(embedded, sublayer, options);
  if (cache != nullptr) cache->past = past + count;
  return result;
}

at::Tensor LanguageModel::logits(const at::Tensor& hidden) const { return ops::linear(hidden, head_, {}); }

Losses LanguageModel::losses(const Inputs& inputs, const LossOptions& options) const {
  const int64_t count = inputs.tokens.size(1) - 1;
  const at::Tensor state = hidden(inputs.tokens.narrow(1, 0, count), options.stack);
  const at::Tensor targets = inputs.tokens.narrow(1, 1, count).reshape({-1});
  const at::Tensor weights = inputs.weights.defined() ? inputs.weights.reshape({-1}) : at::Tensor();
  const ops::HeadLossScales scales{1 / options.normalizer, options.z_loss / options.normalizer};
  const ops::HeadLoss terms = ops::head_loss(state.reshape({-1, config_.width}), head_, targets, weights, scales);
  Losses losses{terms.objective, terms.nll * scales.nll, {}};
  if (options.z_loss != 0) losses.extra.emplace_back("z_loss", terms.z * scales.z);
  return losses;
}

double LanguageModel::forward_flops(int64_t batch) const {
  double weights = 0;  // elements that multiply every token
  for (const auto& parameter : parameters().list()) {
    if (parameter.kind == nn::ParameterKind::linear) weights += static_cast<double>(parameter.value.numel());
  }
  if (config_.tied) weights += static_cast<double>(config_.vocab * config_.width);
  const auto tokens = static_cast<double>(config_.context);
  const double attention =
      static_cast<double>(config_.blocks * config_.width) * tokens * tokens;  // causal half of 2 x 2
  return 2 * static_cast<double>(batch) * (weights * tokens + attention);
}

LmCache LanguageModel::make_cache(int64_t batch, int64_t capacity) const {
  LmCache cache;
  cache.capacity = capacity;
  const int64_t head_dim = config_.width / config_.heads;
  const std::vector<int64_t> shape = {batch, config_.kv_heads, capacity, head_dim};
  for (int64_t block = 0; block < config_.blocks; ++block) {
    const auto options = parameters().options();
    cache.layers.push_back({at::empty(shape, options), at::empty(shape, options)});
  }
  return cache;
}

}  // namespace siamese::models

#include "siamese/models/lm.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "siamese/models/rope_scaling.h"
#include "siamese/nn/expect.h"
#include "siamese/nn/pieces.h"
#include "siamese/ops/embedding.h"
#include "siamese/ops/head_loss.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/reduce.h"

namespace siamese::models {

LanguageModel::LanguageModel(const ModelConfig& config, const nn::InitConfig& init, nn::Parameters parameters)
    : Model(std::move(parameters)), config_(config) {
  const nn::Scope root = root_scope();
  const nn::Initializer initializer(init, config.width, config.blocks);
  embedding_ = nn::Embedding(root.child("embedding"), config.vocab, config.width, initializer.embedding());
  if (config.positions == Positions::learned) {
    positions_ = nn::Embedding(root.child("positions"), config.context, config.width, initializer.embedding());
  } else {
    const auto rotary = [&](const nn::RopeScaling& scaling) {
      return nn::Rotary(config.context, config.width / config.heads, config.rope_theta, this->parameters().options(),
                        scaling);
    };
    rotary_ = rotary(rope_scaling_of(config.rope_scaling));
    for (int64_t block = 0; block < config.blocks && !unscaled_rotary_; ++block) {
      if (!config.scales_rope(block)) unscaled_rotary_ = rotary({});
    }
  }
  stack_ = make_stack(root, config);
  blocks_ = std::make_shared<const Blocks>(root, *stack_, config, initializer);
  head_ = config.tied ? embedding_.weight()
                      : root.child("head").add("weight", nn::ParameterKind::linear, {config.vocab, config.width},
                                               initializer.head());
}

void LanguageModel::check_cache(const at::Tensor& tokens, const StackOptions& options, const LmCache& cache) const {
  const int64_t batch = tokens.size(0), count = tokens.size(1);
  const auto held = static_cast<int64_t>(cache.layers.size());
  nn::expect_that(held == config_.blocks, "cache", "layers of " + std::to_string(config_.blocks) + " blocks", held);
  const auto sequences = static_cast<int64_t>(cache.past.size());
  nn::expect_that(sequences == batch, "cache", std::to_string(batch) + " sequences", sequences);
  nn::expect_that(options.recompute_every <= 0, "recompute_every", "0 with a cache", options.recompute_every);
  const int64_t room = std::min(config_.context, cache.capacity);
  for (const int64_t past : cache.past) {
    const bool slides = cache.slides && count <= 1 && config_.positions == Positions::rope;
    nn::expect_that(slides || past + count <= room, "tokens", "at most " + std::to_string(room), past + count);
  }
}

at::Tensor LanguageModel::embed_after(const at::Tensor& tokens, const LmCache& cache, Sequence& sequence) const {
  const int64_t count = tokens.size(1);
  const at::Tensor embedded = embedding_(tokens);
  sequence.past = cache.past;
  sequence.cache = &cache.layers;
  if (config_.positions == Positions::rope) {
    const bool together =
        std::all_of(cache.past.begin(), cache.past.end(), [&](int64_t past) { return past == cache.past.front(); });
    const at::IntArrayRef begins = cache.past;
    const auto tables = [&](const nn::Rotary& rotary) {
      nn::RotaryTables each = rotary.at_each(together ? begins.slice(0, 1) : begins, count, embedded.options());
      return together ? nn::RotaryTables{each.cos[0], each.sin[0]} : each;  // one table for all
    };
    sequence.rotary = tables(rotary_);
    if (unscaled_rotary_) sequence.unscaled_rotary = tables(*unscaled_rotary_);
    return embedded;
  }
  std::vector<at::Tensor> rows;
  for (const int64_t past : cache.past) rows.push_back(positions_.weight().value().narrow(0, past, count));
  return embedded + at::stack(rows);
}

at::Tensor LanguageModel::embed(const at::Tensor& tokens, const std::vector<std::vector<int64_t>>& borders,
                                Sequence& sequence) const {
  const int64_t count = tokens.size(1);
  nn::expect_that(count <= config_.context, "tokens", "at most " + std::to_string(config_.context), count);
  if (!borders.empty()) {
    const auto rows = static_cast<int64_t>(borders.size());
    nn::expect_that(rows == tokens.size(0), "borders", "of " + std::to_string(tokens.size(0)) + " samples", rows);
    sequence.pieces = nn::piece_lengths(borders, count);
  }
  const at::Tensor embedded = embedding_(tokens);
  if (config_.positions == Positions::rope) {
    sequence.rotary = rotary_.at(0, count, embedded.options());
    if (unscaled_rotary_) sequence.unscaled_rotary = unscaled_rotary_->at(0, count, embedded.options());
    return embedded;
  }
  if (borders.empty()) return ops::add_to_each(embedded, positions_.weight().value().narrow(0, 0, count));
  return embedded + positions_(nn::piece_positions(sequence.pieces, tokens.size(0), count).to(tokens.device()));
}

StackOutput LanguageModel::run(const at::Tensor& given, const StackOptions& options, LmCache* cache,
                               const Dropping& dropping, const std::vector<std::vector<int64_t>>& borders) const {
  nn::expect_indices("tokens", given, {-1, -1}, config_.vocab);
  const at::Tensor tokens = given.to(embedding_.weight().value().device());
  Sequence sequence{.dropping = dropping, .watch = cache == nullptr ? options.watch : nullptr};
  at::Tensor embedded;
  if (cache != nullptr) {
    check_cache(given, options, *cache);
    embedded = embed_after(tokens, *cache, sequence);
  } else {
    embedded = embed(tokens, borders, sequence);
  }
  const auto sublayer = [blocks = blocks_, sequence](
                            const residual::Site& site, const at::Tensor& input, const std::vector<at::Tensor>&,
                            const std::vector<at::Tensor>& carry) { return (*blocks)(site, input, sequence, carry); };
  StackOutput output = (*stack_)(dropping.embedding()(embedded), sublayer, options);
  if (cache != nullptr) {
    for (int64_t& past : cache->past) past += given.size(1);
  }
  return output;
}

at::Tensor LanguageModel::hidden(const at::Tensor& tokens, const StackOptions& options, LmCache* cache) const {
  return run(tokens, options, cache).hidden;
}

at::Tensor LanguageModel::logits(const at::Tensor& hidden) const {
  return ops::from_operand(ops::linear(ops::to_operand(hidden), head_.value(), {}));
}

at::Tensor LanguageModel::tokens_of(const Inputs& inputs) const {
  nn::expect_indices("tokens", inputs.tokens, {-1, -1}, config_.vocab);
  nn::expect_that(inputs.tokens.size(1) >= 2, "tokens", "2 or more of each sample", inputs.tokens.size(1));
  return inputs.tokens.to(parameters().options().device());
}

Losses LanguageModel::losses(const Inputs& inputs, const LossOptions& options) const {
  const at::Tensor tokens = tokens_of(inputs);
  const int64_t count = tokens.size(1) - 1;  // tokens that have a next one
  const Dropping dropping = dropping_of(config_, inputs, options);
  const StackOutput output = run(tokens.narrow(1, 0, count), options.stack, nullptr, dropping, inputs.borders);
  const at::Tensor targets = tokens.narrow(1, 1, count).reshape({-1});
  at::Tensor weights;
  if (inputs.weights.defined()) {
    nn::expect_shape("weights", inputs.weights, {tokens.size(0), count});
    weights = inputs.weights.to(tokens.device()).reshape({-1});
  }
  const ops::HeadLossScales scales{1 / options.normalizer, options.z_loss / options.normalizer};
  const ops::HeadLoss terms = ops::head_loss(ops::to_operand(output.hidden.reshape({-1, config_.width})), head_.value(),
                                             targets, weights, scales);
  Losses losses{terms.objective, terms.nll * scales.nll, {}};
  if (options.z_loss != 0) losses.extra.emplace_back("z_loss", terms.z * scales.z);
  if (config_.expert_count() > 0) add_router_losses(output.beside, options, losses);
  return losses;
}

at::Tensor LanguageModel::state(const Inputs& inputs, const StackOptions& options) const {
  return run(tokens_of(inputs), options, nullptr, {}, inputs.borders).hidden;
}

at::Tensor LanguageModel::read_out(const at::Tensor& state, const Inputs&) const { return logits(state); }

Pass LanguageModel::pass(const Inputs& inputs, const StackOptions& options) const {
  const at::Tensor tokens = tokens_of(inputs);
  const int64_t count = tokens.size(1) - 1;
  const StackOutput output = run(tokens, options, nullptr, {}, inputs.borders);
  const at::Tensor before_last = output.hidden.narrow(1, 0, count).reshape({-1, config_.width});
  const at::Tensor targets = tokens.narrow(1, 1, count).reshape({-1});
  const ops::HeadLoss terms = ops::head_loss(ops::to_operand(before_last), head_.value(), targets, {},
                                             {.nll = 1 / static_cast<double>(targets.numel())});
  const at::Tensor logits = this->logits(output.hidden.detach()).detach();
  Pass pass{logits, terms.objective, {}};
  const at::Tensor normalizers = ops::log_sum_exp(logits.narrow(1, 0, count));
  pass.aux.emplace_back("z_loss", ops::fixed_sum(normalizers.square()) / static_cast<double>(normalizers.numel()));
  if (config_.expert_count() > 0) {
    Losses router{.objective = terms.objective, .loss = {}, .extra = {}, .expert_counts = {}};
    add_router_losses(output.beside, {}, router);
    pass.aux.insert(pass.aux.end(), router.extra.begin(), router.extra.end());
  }
  return pass;
}

void LanguageModel::add_router_losses(const std::vector<at::Tensor>& beside, const LossOptions& options,
                                      Losses& losses) const {
  std::vector<at::Tensor> balance, z, counts;
  for (size_t i = 0; i + 2 < beside.size(); i += 3) {
    balance.push_back(beside[i]);
    z.push_back(beside[i + 1]);
    counts.push_back(beside[i + 2]);
  }
  if (counts.empty()) return;  // an intervention left all of them out
  const at::Tensor mean_balance = at::stack(balance).mean() * options.share;
  const at::Tensor mean_z = at::stack(z).mean() * options.share;
  losses.objective = losses.objective + options.balance_loss * mean_balance + options.router_z_loss * mean_z;
  losses.extra.emplace_back("balance_loss", mean_balance.detach());
  losses.extra.emplace_back("router_z_loss", mean_z.detach());
  losses.expert_counts = at::stack(counts);
}

int64_t LanguageModel::idle_experts() const {
  if (config_.expert_count() == 0) return 0;
  double experts = 0;
  for (int64_t block = 0; block < config_.blocks; ++block) {
    experts += matrix_elements(parameters(), "blocks." + std::to_string(block) + ".ffn.experts.");
  }
  return static_cast<int64_t>(experts) / config_.experts * (config_.experts - config_.experts_per_token);
}

int64_t LanguageModel::active_parameters() const { return parameters().count() - idle_experts(); }

double LanguageModel::forward_flops(int64_t batch) const {
  double weights = matrix_elements(parameters());  // that multiply every token
  if (config_.tied) weights += static_cast<double>(config_.vocab * config_.width);
  weights -= static_cast<double>(idle_experts());
  const auto tokens = static_cast<double>(config_.context);
  double pairs = 0;  // of tokens that see each other: in each block the causal half, or of it what lies in its window
  for (int64_t block = 0; block < config_.blocks; ++block) {
    const int64_t seen = config_.window_of(block);
    const auto window = static_cast<double>(seen > 0 ? std::min(seen, config_.context) : config_.context);
    pairs += tokens * window - window * window / 2;
  }
  const double attention = 2 * static_cast<double>(config_.width) * pairs;
  const double every_token = weights + depth_attention_products(config_);
  return 2 * static_cast<double>(batch) * (every_token * tokens + attention);
}

LmCache LanguageModel::make_cache(int64_t batch, int64_t capacity, bool slides) const {
  nn::expect_that(batch >= 1, "cache batch", "1 or more", batch);
  nn::expect_that(capacity >= 1, "cache capacity", "1 or more", capacity);
  nn::expect_that(!slides || config_.positions == Positions::rope, "cache slides", "false with learned positions", 1);
  LmCache cache;
  cache.capacity = capacity;
  cache.slides = slides;
  cache.past.assign(static_cast<size_t>(batch), 0);
  const int64_t head_dim = config_.width / config_.heads;
  const std::vector<int64_t> shape = {batch, config_.kv_heads, capacity, head_dim};
  for (int64_t block = 0; block < config_.blocks; ++block) {
    const auto options = parameters().options();
    cache.layers.push_back({at::empty(shape, options), at::empty(shape, options)});
  }
  return cache;
}

LmCache LmCache::sequence(size_t index) const {
  LmCache one{.layers = {}, .past = {past.at(index)}, .capacity = capacity, .slides = slides};
  for (const auto& layer : layers) {
    const auto at = static_cast<int64_t>(index);
    one.layers.push_back({layer.keys.narrow(0, at, 1), layer.values.narrow(0, at, 1)});
  }
  return one;
}

LmCache LmCache::sequences(const std::vector<int64_t>& indices) const {
  LmCache some{.layers = {}, .past = {}, .capacity = capacity, .slides = slides};
  for (const int64_t index : indices) some.past.push_back(past.at(static_cast<size_t>(index)));
  for (const auto& layer : layers) {
    const at::Tensor at = at::tensor(indices, at::kLong).to(layer.keys.device());
    some.layers.push_back({layer.keys.index_select(0, at), layer.values.index_select(0, at)});
  }
  return some;
}

}  // namespace siamese::models

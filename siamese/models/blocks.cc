#include "siamese/models/blocks.h"

#include "siamese/ops/operand.h"

namespace siamese::models {

Blocks::Blocks(const nn::Scope& root, const Stack& stack, const ModelConfig& config,
               const nn::Initializer& initializer) {
  nn::AttentionShape attention{.width = config.width,
                               .heads = config.heads,
                               .kv_heads = config.kv_heads,
                               .bias = config.bias,
                               .qkv_bias = config.qkv_bias,
                               .norm_eps = config.norm_eps,
                               .causal = !config.sees_images(),
                               .values = config.value_mixing(),
                               .blocks = config.blocks};
  const nn::FeedForwardShape dense{config.ffn, config.width, config.ffn_width, config.bias};
  const nn::ExpertsShape experts{.kind = config.ffn,
                                 .width = config.width,
                                 .hidden = config.ffn_width,
                                 .experts = config.experts,
                                 .per_token = config.experts_per_token,
                                 .shared_width = config.shared_width,
                                 .renormalise = config.renormalise};
  for (const auto& site : stack.sites()) {
    const nn::Scope scope = root.child("blocks").child(std::to_string(site.block)).child(enum_text(site.kind));
    const residual::BranchInit hint = stack.topology().branch_init(site);
    const nn::InitFactors ffn_factors{hint.ffn_input, hint.output, hint.depth_factor};
    if (site.kind == residual::SiteKind::attention) {
      const nn::AttentionNorm norm = attention_norm(config, stack.topology(), site);
      attention.window = config.window_of(site.block);
      scales_rope_.push_back(config.scales_rope(site.block));
      attentions_.emplace_back(scope, attention, norm, initializer, site.block,
                               nn::InitFactors{hint.value, hint.output, hint.depth_factor});
    } else if (config.expert_count() > 0) {
      experts_.emplace_back(scope, experts, initializer, site.block, ffn_factors);
    } else {
      feed_forwards_.emplace_back(scope, dense, initializer, site.block, ffn_factors);
    }
  }
}

SublayerOutput Blocks::operator()(const residual::Site& site, const at::Tensor& input, const Sequence& sequence,
                                  const std::vector<at::Tensor>& carry) const {
  SublayerOutput output = computed(site, input, sequence, carry);
  output.branch.value = sequence.dropping.branch(site)(output.branch.value);
  return output;
}

SublayerOutput Blocks::computed(const residual::Site& site, const at::Tensor& given, const Sequence& sequence,
                                const std::vector<at::Tensor>& carry) const {
  const at::Tensor input = ops::to_operand(given);
  const auto block = static_cast<size_t>(site.block);
  SublayerOutput output{.branch = {}, .carry = carry};
  if (site.kind == residual::SiteKind::attention) {
    const bool unscaled = !scales_rope_[block] && sequence.unscaled_rotary.cos.defined();
    const nn::RotaryTables& tables = unscaled ? sequence.unscaled_rotary : sequence.rotary;
    const nn::RotaryTables* const rotary = tables.cos.defined() ? &tables : nullptr;
    const nn::KeyValues* const held = sequence.cache != nullptr ? &(*sequence.cache)[block] : nullptr;
    const nn::Dropout dropout = sequence.dropping.attention(site);
    if (sequence.watch != nullptr) {
      const nn::Attention& attention = attentions_[block];
      sequence.watch->attention(site, {.heads = attention.heads(input, rotary, sequence.pieces),
                                       .causal = attention.shape().causal,
                                       .window = attention.shape().window,
                                       .pieces = sequence.pieces});
    }
    output.branch.value =
        attentions_[block](input, rotary, sequence.past, held, dropout, sequence.pieces, &output.carry);
  } else if (experts_.empty()) {
    output.branch.value = feed_forwards_[block](input);
  } else {
    const nn::ExpertsResult result = experts_[block](input);
    output.branch.value = result.value;
    output.beside = {result.balance, result.z, result.counts};
  }
  return output;
}

std::unique_ptr<Stack> make_stack(const nn::Scope& root, const ModelConfig& config) {
  return std::make_unique<Stack>(root, config.residual,
                                 residual::Build{.width = config.width,
                                                 .blocks = config.blocks,
                                                 .norm = config.norm_spec(),
                                                 .modulated = config.modulated(),
                                                 .causal = config.causal()},
                                 config.branch_scales, config.value_mixing().acts());
}

double matrix_elements(const nn::Parameters& parameters, std::string_view prefix) {
  double elements = 0;
  for (const auto& parameter : parameters.list()) {
    if (parameter.kind == nn::ParameterKind::linear && parameter.name.starts_with(prefix)) {
      elements += static_cast<double>(parameter.value.numel());
    }
  }
  return elements;
}

double depth_attention_products(const ModelConfig& config) {
  if (config.depth_attention_stride == 0) return 0;
  size_t sources = 0;
  for (int64_t block = 1; block < config.blocks; ++block) {  // the first has its own values alone
    sources += nn::depth_sources(config.value_mixing(), block).size() + 1;
  }
  return 2 * static_cast<double>(sources) * static_cast<double>(config.width / config.heads * config.kv_heads);
}

}  // namespace siamese::models

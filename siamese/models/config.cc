#include "siamese/models/config.h"

#include "siamese/base/check.h"
#include "siamese/residual/registry.h"

namespace siamese::models {
namespace {

void require(bool ok, const std::string& key, const std::string& expected, int64_t got) {
  if (!ok) throw UsageError("model." + key + ": expected " + expected + ", got " + std::to_string(got));
}

// Far beyond any model, far below what overflows a product of three.
constexpr int64_t kLargest = 1 << 20;

void require_size(const std::string& key, int64_t value, int64_t largest = kLargest) {
  require(value >= 1 && value <= largest, key, "a size from 1 to " + std::to_string(largest), value);
}

Positions positions_of(Family family) {
  switch (family) {
    case Family::vit:
      return Positions::learned;
    case Family::dit:
      return Positions::sincos;
    case Family::lm:
    case Family::moe:
      break;
  }
  return Positions::rope;
}

void resolve_positions(ModelConfig& config) {
  const Positions usual = positions_of(config.family);
  if (config.positions == Positions::auto_) config.positions = usual;
  const bool fits = config.positions == usual || (usual == Positions::rope && config.positions == Positions::learned);
  if (!fits) {
    throw UsageError("model.positions: expected " + std::string(enum_text(usual)) +
                     (usual == Positions::rope ? " or learned" : "") + " for family " +
                     std::string(enum_text(config.family)) + ", got " + std::string(enum_text(config.positions)));
  }
}

void resolve_text(ModelConfig& config, const DataSizes& data) {
  if (config.vocab == 0) config.vocab = data.vocab;
  if (config.vocab == 0) throw UsageError("model.vocab: must be given when data.source is tokens or random");
  require_size("vocab", config.vocab, int64_t{1} << 28);
  require(config.vocab >= data.vocab, "vocab", "at least the " + std::to_string(data.vocab) + " symbols of the data",
          config.vocab);
}

void resolve_experts(const ModelConfig& config) {
  require_size("experts", config.experts, 4096);
  require(config.experts_per_token >= 1 && config.experts_per_token <= config.experts, "experts_per_token",
          "a number from 1 to model.experts (" + std::to_string(config.experts) + ")", config.experts_per_token);
  require(config.shared_width >= 0 && config.shared_width <= kLargest, "shared_width",
          "a size from 0 to " + std::to_string(kLargest), config.shared_width);
  if (config.bias) throw UsageError("model.bias: expected false for family moe: experts have no biases");
}

void require_share(const std::string& key, double value) {
  if (!(value >= 0 && value < 1)) throw UsageError("model." + key + ": expected a share from 0 to below 1");
}

void resolve_image(ModelConfig& config, const DataSizes& data) {
  if (config.channels == 0) config.channels = data.channels;
  if (config.classes == 0) config.classes = data.classes;
  if (config.channels == 0) throw UsageError("model.channels: must be given: data.source does not say");
  if (config.classes == 0) throw UsageError("model.classes: must be given: data.source does not say");
  require_size("image", config.image, 1 << 14);
  require_size("patch", config.patch, 1 << 14);
  require_size("channels", config.channels, 1 << 12);
  require_size("classes", config.classes);
  require(config.image % config.patch == 0, "patch", "a divisor of model.image (" + std::to_string(config.image) + ")",
          config.patch);
  require(config.classes >= data.classes, "classes", "at least the " + std::to_string(data.classes) + " of the data",
          config.classes);
  require_share("drop_path", config.drop_path);
  require_share("label_dropout", config.label_dropout);
  const bool vit = config.family == Family::vit;
  config.context = config.grid() * config.grid() + (vit ? 1 : 0);
  config.vocab = 0;
  config.tied = false;
  if (!vit) require(config.width % 4 == 0, "width", "a multiple of 4 for positions: sincos", config.width);
}

}  // namespace

void resolve(ModelConfig& config, const DataSizes& data) {
  config.residual = residual::canonical_scheme(config.residual);
  require_size("width", config.width);
  require_size("blocks", config.blocks, 4096);
  require_size("heads", config.heads);
  resolve_positions(config);
  if (config.sees_images()) {
    resolve_image(config, data);
  } else {
    resolve_text(config, data);
  }
  if (config.family == Family::moe) resolve_experts(config);
  if (config.family != Family::vit && config.drop_path != 0) {
    throw UsageError("model.drop_path: expected 0 for family " + std::string(enum_text(config.family)));
  }
  require_size("context", config.context, int64_t{1} << 24);
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.ffn_width == 0) config.ffn_width = 4 * config.width;
  require_size("ffn_width", config.ffn_width);
  require(config.width % config.heads == 0, "heads", "a divisor of model.width (" + std::to_string(config.width) + ")",
          config.heads);
  require_size("kv_heads", config.kv_heads);
  require(config.heads % config.kv_heads == 0, "kv_heads",
          "a divisor of model.heads (" + std::to_string(config.heads) + ")", config.kv_heads);
  const int64_t head_dim = config.width / config.heads;
  if (config.positions == Positions::rope) {
    require(head_dim % 2 == 0, "heads", "an even head width for positions: rope (width / heads)", head_dim);
  }
  if (!(config.norm_eps > 0)) throw UsageError("model.norm_eps: expected a number > 0");
  if (!(config.rope_theta > 0)) throw UsageError("model.rope_theta: expected a number > 0");
}

nn::AttentionNorm attention_norm(const ModelConfig& config, const residual::Topology& topology,
                                 const residual::Site& site) {
  switch (config.attention_norm) {
    case AttentionNormChoice::none:
      return nn::AttentionNorm::none;
    case AttentionNormChoice::qk:
      return nn::AttentionNorm::qk;
    case AttentionNormChoice::qk_full:
      return nn::AttentionNorm::qk_full;
    case AttentionNormChoice::qkv:
      return nn::AttentionNorm::qkv;
    case AttentionNormChoice::scheme:
      break;
  }
  return topology.attention_norm(site);
}

}  // namespace siamese::models

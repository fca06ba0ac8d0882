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

}  // namespace

void resolve(ModelConfig& config, int64_t data_vocab) {
  config.residual = residual::canonical_scheme(config.residual);
  require_size("width", config.width);
  require_size("blocks", config.blocks, 4096);
  require_size("heads", config.heads);
  require_size("context", config.context, int64_t{1} << 24);
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.ffn_width == 0) config.ffn_width = 4 * config.width;
  if (config.vocab == 0) config.vocab = data_vocab;
  require_size("ffn_width", config.ffn_width);
  if (config.vocab == 0) throw UsageError("model.vocab: must be given when data.source is tokens or random");
  require_size("vocab", config.vocab, int64_t{1} << 28);
  require(config.vocab >= data_vocab, "vocab", "at least the " + std::to_string(data_vocab) + " symbols of the data",
          config.vocab);
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

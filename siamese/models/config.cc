#include "siamese/models/config.h"

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/io/message.h"
#include "siamese/models/rope_scaling.h"
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

void require_size_or_0(const std::string& key, int64_t value, int64_t largest = kLargest) {
  require(value >= 0 && value <= largest, key, "a size from 0 to " + std::to_string(largest), value);
}

template <class Ok>
void require_number(const std::string& key, double value, const std::string& expected, Ok ok) {
  if (!ok(value)) throw UsageError("model." + key + ": expected " + expected + ", got " + config::print(value).text);
}

// Every key, whatever the family: one that this family does not use is kept in config.yaml and read by another day's
// program, so it must not be impossible either.
void check_ranges(const ModelConfig& config) {
  require_size("width", config.width);
  require_size("blocks", config.blocks, 4096);
  require_size("heads", config.heads);
  require_size_or_0("kv_heads", config.kv_heads);
  require_size_or_0("ffn_width", config.ffn_width);
  require_size_or_0("vocab", config.vocab, int64_t{1} << 28);
  require_size("context", config.context, int64_t{1} << 24);
  require_size_or_0("window", config.window, int64_t{1} << 24);
  const std::string& pattern = config.window_pattern;
  if (pattern.empty() || pattern.size() > 4096 || pattern.find_first_not_of("SF") != std::string::npos) {
    throw UsageError("model.window_pattern: expected letters S (a window) and F (full), as SSSF, got " +
                     io::in_quotes(pattern));
  }
  require_size_or_0("depth_attention_stride", config.depth_attention_stride, 4096);
  require_size_or_0("depth_attention_recent", config.depth_attention_recent, 4096);
  require_size("experts", config.experts, 4096);
  const bool moe = config.family == Family::moe;
  const int64_t most = moe ? config.experts : 4096;
  require(config.experts_per_token >= 1 && config.experts_per_token <= most, "experts_per_token",
          "a number from 1 to " + (moe ? "model.experts (" + std::to_string(most) + ")" : std::to_string(most)),
          config.experts_per_token);
  require_size_or_0("shared_width", config.shared_width);
  require_size("image", config.image, 1 << 14);
  require_size("patch", config.patch, 1 << 14);
  require_size_or_0("channels", config.channels, 1 << 12);
  require_size_or_0("classes", config.classes);
  const auto share = [](double value) { return value >= 0 && value < 1; };
  require_number("dropout.embedding", config.dropout.embedding, "a share from 0 to below 1", share);
  require_number("dropout.attention", config.dropout.attention, "a share from 0 to below 1", share);
  require_number("dropout.branch", config.dropout.branch, "a share from 0 to below 1", share);
  require_number("drop_path", config.drop_path, "a share from 0 to below 1", share);
  require_number("label_dropout", config.label_dropout, "a share from 0 to below 1", share);
  const auto positive = [](double value) { return value > 0; };
  require_number("norm_eps", config.norm_eps, "a number > 0", positive);
  require_number("norm_alpha", config.norm_alpha, "a number > 0", positive);
  require_number("rope_theta", config.rope_theta, "a number > 0", positive);
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
  require(config.vocab >= data.vocab, "vocab", "at least the " + std::to_string(data.vocab) + " symbols of the data",
          config.vocab);
}

void resolve_image(ModelConfig& config, const DataSizes& data) {
  if (config.channels == 0) config.channels = data.channels;
  if (config.classes == 0) config.classes = data.classes;
  if (config.channels == 0) throw UsageError("model.channels: must be given: data.source does not say");
  if (config.classes == 0) throw UsageError("model.classes: must be given: data.source does not say");
  require(config.image % config.patch == 0, "patch", "a divisor of model.image (" + std::to_string(config.image) + ")",
          config.patch);
  require(config.classes >= data.classes, "classes", "at least the " + std::to_string(data.classes) + " of the data",
          config.classes);
  const bool vit = config.family == Family::vit;
  config.context = config.grid() * config.grid() + (vit ? 1 : 0);
  config.vocab = 0;
  config.tied = false;
  if (!vit) require(config.width % 4 == 0, "width", "a multiple of 4 for positions: sincos", config.width);
}

// What differs from block to block.
void check_blocks(const ModelConfig& config) {
  int64_t sliding = 0;
  for (int64_t block = 0; block < config.blocks; ++block) sliding += config.slides(block) ? 1 : 0;
  if (sliding > 0) {
    require_number("dropout.attention", config.dropout.attention, "0 with model.window",
                   [](double x) { return x == 0; });
  }
  const bool for_full = config.rope_scaling_layers == RopeScalingLayers::full && config.rope_scaling != "none";
  if (for_full && sliding == config.blocks) {
    throw UsageError("model.rope_scaling_layers: expected all where every block has a window, got full");
  }
  if (config.value_residual != nn::ValueResidual::none && config.depth_attention_stride > 0) {
    throw UsageError("model.value_residual: expected none with model.depth_attention_stride, got " +
                     std::string(enum_text(config.value_residual)) + ": both decide what the values are");
  }
}

}  // namespace

config::Use for_family(std::initializer_list<Family> families) { return config::for_values("model.family", families); }

config::Use for_context() {
  config::Use use = for_text();
  use.decided_by = {"model.image", "model.patch"};
  return use;
}

config::Use for_rope() { return config::for_values("model.positions", {Positions::rope}); }

config::Use with_rope_scaling() {
  config::Use use = config::for_values("model.rope_scaling", std::vector<std::string>{"none"});
  use.excluded = true;
  return use;
}

config::Use for_pointwise() { return config::for_values("model.norm", {nn::NormKind::dyt, nn::NormKind::derf}); }

void resolve(ModelConfig& config, const DataSizes& data) {
  config.residual = residual::canonical_scheme(config.residual);
  config.rope_scaling = rope_scaling_text(rope_scaling_of(config.rope_scaling));
  check_ranges(config);
  resolve_positions(config);
  if (config.sees_images()) {
    resolve_image(config, data);
  } else {
    resolve_text(config, data);
  }
  if (config.family == Family::moe && config.bias) {
    throw UsageError("model.bias: expected false for family moe: experts have no biases");
  }
  check_blocks(config);
  require_size("context", config.context, int64_t{1} << 24);  // of images it follows from others
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.ffn_width == 0) config.ffn_width = 4 * config.width;
  require_size("ffn_width", config.ffn_width);
  require(config.width % config.heads == 0, "heads", "a divisor of model.width (" + std::to_string(config.width) + ")",
          config.heads);
  require(config.heads % config.kv_heads == 0, "kv_heads",
          "a divisor of model.heads (" + std::to_string(config.heads) + ")", config.kv_heads);
  const int64_t head_dim = config.width / config.heads;
  if (config.positions == Positions::rope) {
    require(head_dim % 2 == 0, "heads", "an even head width for positions: rope (width / heads)", head_dim);
  }
}

std::string norm_note(const ModelConfig& config) {
  if (!config.norm_spec().pointwise()) return "";
  const nn::Parameters shapes(0, at::kFloat, at::kMeta);
  const residual::Build build{.width = config.width, .blocks = config.blocks, .norm = config.norm_spec()};
  const auto topology = residual::make_topology(config.residual, nn::Scope(shapes), build);
  const std::string lost(topology->lost_without_true_norm());
  if (lost.empty()) return "";
  return "model.norm (" + std::string(enum_text(config.norm)) + ") does not take out the size of its input: with " +
         config.residual + " " + lost;
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

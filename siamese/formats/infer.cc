#include "siamese/formats/infer.h"

#include <algorithm>
#include <cmath>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/formats/names.h"
#include "siamese/formats/our_shapes.h"
#include "siamese/io/message.h"
#include "siamese/models/config.h"
#include "siamese/residual/registry.h"

namespace siamese::formats {
namespace {

using models::Family;

constexpr int64_t kMostBlocks = 4096;  // what a config may have

bool is_double(int64_t rows, int64_t half) { return half > 0 && rows % 2 == 0 && rows / 2 == half; }

// One reading of a model's tensors: what is told goes into `told`.
class Reading {
 public:
  Reading(const OurShapes& shapes, const config::Value& said) : shapes_(shapes), said_(said) {}

  config::Value read() {
    const Family family = family_of();
    const bool images = family == Family::vit || family == Family::dit;
    tell("family", family);
    width_ = images ? shapes_.size("patch.weight", 0) : shapes_.size("embedding.weight", 1);
    if (width_ == 0) width_ = size("attention.out.weight", 0);
    tell_size("width", width_);
    tell_size("blocks", shapes_.blocks);
    if (images) {
      read_image(family);
    } else {
      read_text();
    }
    if (family == Family::moe) {
      read_experts();
    } else {
      read_feed_forward("ffn.in.weight", "ffn.out.weight");
    }
    read_biases();
    read_heads();
    return told_;
  }

 private:
  template <class T>
  void tell(std::string_view key, const T& value) {
    told_[key] = config::print(value);
  }
  void tell_size(std::string_view key, int64_t size) {
    if (size > 0) tell(key, size);
  }
  // A whole number that was said elsewhere; 0 when none was.
  int64_t said_size(std::string_view key) const {
    const config::Value* const value = said_.find(key);
    int64_t size = 0;
    if (value != nullptr) config::read(*value, "model." + std::string(key), size);
    return size;
  }
  static std::string in_block(int64_t block, std::string_view name) {
    return "blocks." + std::to_string(block) + "." + std::string(name);
  }
  // Of the first block that has the tensor: one that lacks it is named by the check of shapes.
  int64_t size(std::string_view name, size_t dimension) const {
    for (int64_t block = 0; block < std::min(shapes_.blocks, kMostBlocks); ++block) {
      if (shapes_.has(in_block(block, name))) return shapes_.size(in_block(block, name), dimension);
    }
    return 0;
  }

  Family family_of() const {
    Family family = Family::lm;
    if (const config::Value* const said = said_.find("family")) {
      config::read(*said, "model.family", family);
      return family;
    }
    if (shapes_.has("labels.weight")) return Family::dit;
    if (shapes_.has("class_token")) return Family::vit;
    return size("ffn.router.weight", 0) > 0 ? Family::moe : Family::lm;
  }

  void read_text() {
    // Without its embedding a file cannot fit, whatever the vocabulary: any will do to list all that is missing.
    const int64_t vocab = shapes_.size(shapes_.has("embedding.weight") ? "embedding.weight" : "head.weight", 0);
    tell_size("vocab", std::max<int64_t>(vocab, 1));
    tell("tied", !shapes_.has("head.weight"));
    const bool learned = shapes_.has("positions.weight");
    tell("positions", learned ? models::Positions::learned : models::Positions::rope);
    if (learned) tell_size("context", shapes_.size("positions.weight", 0));
  }

  void read_feed_forward(std::string_view in, std::string_view out) {
    const int64_t hidden = size(out, 1);
    tell_size("ffn_width", hidden);
    // One matrix of the hidden width: with which GELU, it does not tell.
    if (is_double(size(in, 0), hidden)) tell("ffn", nn::FeedForwardKind::swiglu);
  }

  void read_experts() {
    tell_size("experts", size("ffn.router.weight", 0));
    const int64_t hidden = size("ffn.experts.out", 2);
    tell_size("ffn_width", hidden);
    if (is_double(size("ffn.experts.in", 1), hidden)) tell("ffn", nn::FeedForwardKind::swiglu);
    tell("shared_width", size("ffn.shared.out.weight", 1));
  }

  void read_image(Family family) {
    const int64_t pixels = shapes_.size("patch.weight", 1);
    const int64_t patch = said_size("patch") > 0 ? said_size("patch") : shapes_.patch;
    tell_size("patch", patch);
    if (patch > 0 && patch < (1 << 14)) {
      if (pixels % (patch * patch) == 0) tell_size("channels", pixels / (patch * patch));
      const int64_t places = shapes_.size("positions.weight", 0) - (family == Family::vit ? 1 : 0);
      const auto grid = static_cast<int64_t>(std::sqrt(static_cast<double>(std::max<int64_t>(places, 0))));
      if (grid < (1 << 14) && grid * grid == places) tell_size("image", grid * patch);
    }
    if (family == Family::vit) {
      tell_size("classes", shapes_.size("head.weight", 0));
      return;
    }
    const int64_t rows = shapes_.size("final.out.weight", 0);
    if (pixels > 0 && (rows == pixels || is_double(rows, pixels))) tell("learn_sigma", rows != pixels);
    read_labels(shapes_.size("labels.weight", 0));
  }

  // A row more than classes, when labels are hidden in training.
  void read_labels(int64_t rows) {
    const config::Value* const dropout = said_.find("label_dropout");
    double share = 0.1;
    if (dropout != nullptr) {
      config::read(*dropout, "model.label_dropout", share);
    } else if (said_size("classes") == rows && rows > 0) {
      share = 0;
      tell("label_dropout", share);
    }
    tell_size("classes", share > 0 ? rows - 1 : rows);
  }

  void read_biases() {
    const bool of_qkv = size("attention.qkv.bias", 0) > 0;
    const bool elsewhere =
        size("attention.out.bias", 0) > 0 || size("ffn.in.bias", 0) > 0 || size("ffn.out.bias", 0) > 0;
    const bool bias = of_qkv && elsewhere;
    tell("bias", bias);
    if (of_qkv && !elsewhere) tell("qkv_bias", true);
    bool of_norms = false;
    for (const auto& [name, shape] : shapes_.shapes) of_norms = of_norms || name.ends_with("norm.bias");
    const auto has = [&](std::string_view ending) {
      return std::any_of(shapes_.shapes.begin(), shapes_.shapes.end(),
                         [&](const auto& entry) { return std::string_view(entry.first).ends_with(ending); });
    };
    if (has("norm.alpha")) return tell("norm", has("norm.shift") ? nn::NormKind::derf : nn::NormKind::dyt);
    // Without biases, RMSNorm and LayerNorm have the same tensors.
    if (bias) tell("norm", of_norms ? nn::NormKind::layer : nn::NormKind::rms);
  }

  nn::AttentionNorm stored_norm(int64_t block) const {
    const auto norm_width = [&](std::string_view name) { return shapes_.size(in_block(block, name), 0); };
    if (norm_width("attention.v_norm.weight") > 0) return nn::AttentionNorm::qkv;
    const int64_t wide = norm_width("attention.q_norm.weight");
    if (wide == 0) return nn::AttentionNorm::none;
    return wide == width_ ? nn::AttentionNorm::qk_full : nn::AttentionNorm::qk;
  }

  // Of the block that has most of them: what another lacks is missing there.
  nn::AttentionNorm stored_norm() const {
    nn::AttentionNorm most = nn::AttentionNorm::none;
    for (int64_t block = 0; block < std::min(shapes_.blocks, kMostBlocks); ++block) {
      const nn::AttentionNorm norm = stored_norm(block);
      if (norm == nn::AttentionNorm::qkv) return norm;
      if (norm != nn::AttentionNorm::none) most = norm;
    }
    return most;
  }

  void read_heads() {
    const nn::AttentionNorm norm = stored_norm();
    int64_t heads = said_size("heads");
    const int64_t head_width = size("attention.q_norm.weight", 0);
    const bool by_head = norm == nn::AttentionNorm::qk || norm == nn::AttentionNorm::qkv;
    if (by_head && head_width > 0 && width_ % head_width == 0) {
      tell("heads", width_ / head_width);
      if (heads == 0) heads = width_ / head_width;
    }
    const int64_t key_rows = (size("attention.qkv.weight", 0) - width_) / 2;
    if (heads > 0 && width_ > 0 && width_ % heads == 0 && key_rows % (width_ / heads) == 0) {
      tell_size("kv_heads", key_rows / (width_ / heads));
    }
    if (!as_the_scheme_asks()) tell("attention_norm", norm);
    if (size("attention.value_gate.weight", 0) > 0) tell("value_residual", nn::ValueResidual::learned);
  }

  // Whether the blocks have the norms that their scheme asks for; one block that has them is enough: another with fewer
  // lacks them. True when the scheme is not known here.
  bool as_the_scheme_asks() const {
    const config::Value* const scheme = said_.find("residual");
    if (scheme == nullptr || width_ <= 0 || shapes_.blocks < 1 || shapes_.blocks > kMostBlocks) return true;
    nn::Parameters parameters(0, at::kFloat, at::kMeta);
    const auto topology = residual::make_topology(scheme->text, nn::Scope(parameters),
                                                  {.width = width_, .blocks = shapes_.blocks, .norm = {}});
    bool all = true;
    for (int64_t block = 0; block < shapes_.blocks; ++block) {
      const nn::AttentionNorm asked = topology->attention_norm(residual::site_at(2 * block, shapes_.blocks));
      const bool fits = asked == stored_norm(block);
      if (fits && asked != nn::AttentionNorm::none) return true;
      all = all && fits;
    }
    return all;
  }

  const OurShapes& shapes_;
  const config::Value& said_;
  config::Value told_ = config::Value::map();
  int64_t width_ = 0;
};

// What the layout calls the tensor that a sample meets first.
std::string input_name(Layout layout) {
  for (const Rule& rule : table_of(layout).rules) {
    if (rule.ours == "embedding.weight") return std::string(rule.theirs.front());
    if (rule.ours == "patch.+") return fill_name(rule.theirs.front(), {.role = "weight"});
  }
  return "embedding.weight or patch.weight";
}

}  // namespace

config::Value told_by_tensors(const StoredTensors& stored, const config::Value& said) {
  if (stored.groups().empty()) return config::Value::map();  // what a probe recorded, without gradients
  const OurShapes shapes = our_shapes(stored);
  const auto& group = stored.groups().begin()->second;
  const bool has_input =
      shapes.has("embedding.weight") || shapes.has("patch.weight") || shapes.has("blocks.0.attention.out.weight");
  if (!has_input && (said.find("width") == nullptr || shapes.shapes.empty())) {
    throw DataError(stored.file() + ": expected the names of layout " + std::string(enum_text(stored.layout())) +
                    ", which has " + input_name(stored.layout()) + ", got " +
                    (group.empty() ? "no tensor" : io::in_quotes(group.begin()->second->name)));
  }
  return Reading(shapes, said).read();
}

}  // namespace siamese::formats

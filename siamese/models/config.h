// What a model is: the `model` section of a config.
#pragma once

#include <cstdint>
#include <string>

#include "siamese/base/enum_text.h"
#include "siamese/nn/attention.h"
#include "siamese/nn/feed_forward.h"
#include "siamese/nn/norm.h"
#include "siamese/residual/topology.h"

namespace siamese::models {

enum class Family { lm };
enum class Positions { rope, learned };
enum class AttentionNormChoice { scheme, none, qk, qk_full, qkv };

struct ModelConfig {
  Family family = Family::lm;
  std::string residual = "siamese";
  int64_t width = 256;
  int64_t blocks = 6;
  int64_t heads = 4;
  int64_t kv_heads = 0;
  nn::FeedForwardKind ffn = nn::FeedForwardKind::swiglu;
  int64_t ffn_width = 0;
  int64_t vocab = 0;
  bool tied = true;
  int64_t context = 256;
  Positions positions = Positions::rope;
  double rope_theta = 10000;
  bool bias = false;
  nn::NormKind norm = nn::NormKind::rms;
  double norm_eps = 1e-5;
  AttentionNormChoice attention_norm = AttentionNormChoice::scheme;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("family", self.family, "what kind of model");
    visit("residual", self.residual, "residual scheme, for example pre, post, siamese, siamese(x=hybrid)");
    visit("width", self.width, "width of the streams");
    visit("blocks", self.blocks, "number of blocks (attention + FFN)");
    visit("heads", self.heads, "query heads; must divide width");
    visit("kv_heads", self.kv_heads, "key/value heads; must divide heads; 0 = heads");
    visit("ffn", self.ffn, "feed-forward branch");
    visit("ffn_width", self.ffn_width, "hidden width (SwiGLU: of one half); 0 = 4 x width");
    visit("vocab", self.vocab, "rows of the embedding; 0 = as many as the data has");
    visit("tied", self.tied, "the head uses the embedding matrix");
    visit("context", self.context, "tokens of one sample");
    visit("positions", self.positions, "position encoding");
    visit("rope_theta", self.rope_theta, "base of the rotary frequencies");
    visit("bias", self.bias, "biases in linear layers and LayerNorm");
    visit("norm", self.norm, "kind of norm");
    visit("norm_eps", self.norm_eps, "added inside the root of every norm");
    visit("attention_norm", self.attention_norm, "norms on q, k, v; scheme = what the residual scheme asks for");
  }

  nn::NormSpec norm_spec() const { return {.kind = norm, .eps = norm_eps, .bias = bias}; }
};

// Fills in what was left to be derived (kv_heads, ffn_width, vocab from `data_vocab`), makes the scheme text canonical,
// and refuses impossible shapes with the key, what was expected and what came.
void resolve(ModelConfig& config, int64_t data_vocab);

// The norms inside attention at a site: the config's choice, or the scheme's.
nn::AttentionNorm attention_norm(const ModelConfig& config, const residual::Topology& topology,
                                 const residual::Site& site);

}  // namespace siamese::models

template <>
struct siamese::EnumText<siamese::models::Family> {
  static constexpr EnumNames<models::Family, 1> names{{{models::Family::lm, "lm"}}};
};

template <>
struct siamese::EnumText<siamese::models::Positions> {
  static constexpr EnumNames<models::Positions, 2> names{
      {{models::Positions::rope, "rope"}, {models::Positions::learned, "learned"}}};
};

template <>
struct siamese::EnumText<siamese::models::AttentionNormChoice> {
  static constexpr EnumNames<models::AttentionNormChoice, 5> names{{{models::AttentionNormChoice::scheme, "scheme"},
                                                                    {models::AttentionNormChoice::none, "none"},
                                                                    {models::AttentionNormChoice::qk, "qk"},
                                                                    {models::AttentionNormChoice::qk_full, "qk_full"},
                                                                    {models::AttentionNormChoice::qkv, "qkv"}}};
};

// What a model is: the `model` section of a config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/config/use.h"
#include "siamese/nn/attention.h"
#include "siamese/nn/feed_forward.h"
#include "siamese/nn/norm.h"
#include "siamese/residual/topology.h"

namespace siamese::models {

enum class Family { lm, moe, vit, dit };
// auto: rope for language models, learned for vit, sincos (a fixed table) for dit.
enum class Positions { auto_, rope, learned, sincos };
enum class AttentionNormChoice { scheme, none, qk, qk_full, qkv };
enum class RopeScalingLayers { all, full };

// Keys that only some families use.
config::Use for_family(std::initializer_list<Family> families);
inline config::Use for_text() { return for_family({Family::lm, Family::moe}); }
inline config::Use for_images() { return for_family({Family::vit, Family::dit}); }
config::Use for_context();
config::Use for_rope();
config::Use with_rope_scaling();
config::Use for_pointwise();

// Chances in training, in every family (dropping.h).
struct DropoutConfig {
  double embedding = 0;
  double attention = 0;
  double branch = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("embedding", self.embedding, "chance that an element of the embedding is dropped in training");
    visit("attention", self.attention, "chance that a weight of attention is dropped in training");
    visit("branch", self.branch, "chance that an element of a branch's result is dropped in training");
  }
};

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
  int64_t window = 0;
  std::string window_pattern = "S";
  Positions positions = Positions::auto_;
  double rope_theta = 10000;
  std::string rope_scaling = "none";
  RopeScalingLayers rope_scaling_layers = RopeScalingLayers::all;
  bool bias = false;
  bool qkv_bias = false;
  nn::NormKind norm = nn::NormKind::rms;
  double norm_eps = 1e-5;
  double norm_alpha = 0.5;
  AttentionNormChoice attention_norm = AttentionNormChoice::scheme;
  nn::ValueResidual value_residual = nn::ValueResidual::none;
  int64_t depth_attention_stride = 0;
  int64_t depth_attention_recent = 0;
  int64_t experts = 8;
  int64_t experts_per_token = 2;
  int64_t shared_width = 0;
  bool renormalise = false;
  int64_t image = 32;
  int64_t patch = 4;
  int64_t channels = 0;
  int64_t classes = 0;
  DropoutConfig dropout;
  double drop_path = 0;
  double label_dropout = 0.1;
  bool learn_sigma = true;
  // No key: factors on what the branches of each block write, in every pass that is given none (StackOptions); empty:
  // none. A model as it is in the middle of a residual warm-up is built with those of its step.
  std::vector<double> branch_scales = {};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("family", self.family, "what kind of model");
    visit("residual", self.residual, "residual scheme, for example pre, post, siamese, siamese(x=hybrid)");
    visit("width", self.width, "width of the streams");
    visit("blocks", self.blocks, "number of blocks (attention + FFN)");
    visit("heads", self.heads, "query heads; must divide width");
    visit("kv_heads", self.kv_heads, "key/value heads; must divide heads; 0 = heads");
    visit("ffn", self.ffn, "feed-forward branch");
    visit("ffn_width", self.ffn_width, "hidden width (SwiGLU: of one half; moe: of one expert); 0 = 4 x width");
    visit("vocab", self.vocab, {"rows of the embedding; 0 = as many as the data has", for_text()});
    visit("tied", self.tied, {"the head uses the embedding matrix", for_text()});
    visit("context", self.context, {"tokens of one sample; of images it follows from image and patch", for_context()});
    visit("window", self.window, {"tokens that a token sees, itself among them; 0 = all before it", for_text()});
    visit("window_pattern", self.window_pattern,
          {"which blocks have the window, S, and which see all, F: SSSF is repeated over them", for_text(),
           config::with({"model.window"})});
    visit("positions", self.positions, "position encoding");
    visit("rope_theta", self.rope_theta, {"base of the rotary frequencies", for_rope()});
    visit("rope_scaling", self.rope_scaling,
          {"rotary frequencies for a longer context: none, llama3(factor=8, context=8192) or yarn(...)", for_rope()});
    visit("rope_scaling_layers", self.rope_scaling_layers,
          {"which blocks rope_scaling is for: all, or those that see all tokens (window_pattern)", for_rope(),
           with_rope_scaling()});
    visit("bias", self.bias, "biases in linear layers and in norms but RMSNorm");
    visit("qkv_bias", self.qkv_bias, {"biases of q, k and v alone", config::without("model.bias")});
    visit("norm", self.norm, "kind of norm");
    visit("norm_eps", self.norm_eps, "added inside the root of every norm");
    visit("norm_alpha", self.norm_alpha, {"factor inside tanh or erf at the start; it is learned", for_pointwise()});
    visit("attention_norm", self.attention_norm, "norms on q, k, v; scheme = what the residual scheme asks for");
    visit("value_residual", self.value_residual, "mixes the values of block 0 into those of the later ones");
    visit("depth_attention_stride", self.depth_attention_stride,
          "a token's values attend to those of every so many-th block before; 0 = to none");
    visit("depth_attention_recent", self.depth_attention_recent,
          {"and to those of so many blocks just before", config::with({"model.depth_attention_stride"})});
    visit("experts", self.experts, {"experts of a block", for_family({Family::moe})});
    visit("experts_per_token", self.experts_per_token, {"experts that a token is sent to", for_family({Family::moe})});
    visit("shared_width", self.shared_width,
          {"hidden width of an expert that sees every token; 0 = none", for_family({Family::moe})});
    visit("renormalise", self.renormalise,
          {"the weights of the chosen experts add up to 1", for_family({Family::moe})});
    visit("image", self.image, {"rows and columns of an image or latent", for_images()});
    visit("patch", self.patch, {"rows and columns of a patch; must divide image", for_images()});
    visit("channels", self.channels, {"of an image or latent; 0 = as many as the data has", for_images()});
    visit("classes", self.classes, {"0 = as many as the data has", for_images()});
    visit("dropout", self.dropout, "");
    visit("drop_path", self.drop_path,
          {"chance that a sample skips the last block's branches; earlier ones less", for_family({Family::vit})});
    visit("label_dropout", self.label_dropout,
          {"chance that a label is hidden in training; 0 = no guidance", for_family({Family::dit})});
    visit("learn_sigma", self.learn_sigma, {"the model predicts the variance too", for_family({Family::dit})});
  }

  // What the families differ in, for what serves several.
  bool sees_images() const { return family == Family::vit || family == Family::dit; }
  bool causal() const { return !sees_images(); }                                // a token sees none of those after it
  bool modulated() const { return family == Family::dit; }                      // shift, scale and gate of each branch
  int64_t expert_count() const { return family == Family::moe ? experts : 0; }  // of a block; 0: a dense FFN
  int64_t grid() const { return image / patch; }                                // patches of a row

  // Whether a block sees no more than the window, whatever its size.
  bool slides(int64_t block) const {
    return causal() && window > 0 && window_pattern[static_cast<size_t>(block) % window_pattern.size()] == 'S';
  }
  int64_t window_of(int64_t block) const { return slides(block) ? window : 0; }  // 0: all
  bool scales_rope(int64_t block) const { return rope_scaling_layers == RopeScalingLayers::all || !slides(block); }
  nn::ValueMixing value_mixing() const { return {value_residual, depth_attention_stride, depth_attention_recent}; }

  nn::NormSpec norm_spec() const { return {.kind = norm, .eps = norm_eps, .bias = bias, .alpha = norm_alpha}; }
};

// What the data says of itself; 0 = the model has to say.
struct DataSizes {
  int64_t vocab = 0;
  int64_t classes = 0;
  int64_t channels = 0;
};

// Fills in what was left to be derived (kv_heads, ffn_width, context of images, sizes of the data), makes the scheme
// text canonical, and refuses impossible shapes with the key, what was expected and what came.
void resolve(ModelConfig& config, const DataSizes& data);

// What the residual scheme is not under the model's kind of norm, in a few words; empty: nothing is amiss.
std::string norm_note(const ModelConfig& config);

// The norms inside attention at a site: the config's choice, or the scheme's.
nn::AttentionNorm attention_norm(const ModelConfig& config, const residual::Topology& topology,
                                 const residual::Site& site);

}  // namespace siamese::models

template <>
struct siamese::EnumText<siamese::models::Family> {
  static constexpr EnumNames<models::Family, 4> names{{{models::Family::lm, "lm"},
                                                       {models::Family::moe, "moe"},
                                                       {models::Family::vit, "vit"},
                                                       {models::Family::dit, "dit"}}};
};

template <>
struct siamese::EnumText<siamese::models::Positions> {
  static constexpr EnumNames<models::Positions, 4> names{{{models::Positions::auto_, "auto"},
                                                          {models::Positions::rope, "rope"},
                                                          {models::Positions::learned, "learned"},
                                                          {models::Positions::sincos, "sincos"}}};
};

template <>
struct siamese::EnumText<siamese::models::AttentionNormChoice> {
  static constexpr EnumNames<models::AttentionNormChoice, 5> names{{{models::AttentionNormChoice::scheme, "scheme"},
                                                                    {models::AttentionNormChoice::none, "none"},
                                                                    {models::AttentionNormChoice::qk, "qk"},
                                                                    {models::AttentionNormChoice::qk_full, "qk_full"},
                                                                    {models::AttentionNormChoice::qkv, "qkv"}}};
};

template <>
struct siamese::EnumText<siamese::models::RopeScalingLayers> {
  static constexpr EnumNames<models::RopeScalingLayers, 2> names{
      {{models::RopeScalingLayers::all, "all"}, {models::RopeScalingLayers::full, "full"}}};
};

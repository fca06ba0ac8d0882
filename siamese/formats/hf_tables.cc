// The names of the transformers package, and of a public hybrid SiameseNorm model in its style. Linear weights are
// [out, in] but for GPT-2's, whose Conv1D holds [in, out].
#include <algorithm>
#include <array>

#include "siamese/formats/tables.h"

namespace siamese::formats {
namespace {

constexpr Rule kHfLlama[] = {
    {"embedding.weight", {"model.embed_tokens.weight"}},
    {"blocks.*.attention_junction.norm.weight", {"model.layers.*.input_layernorm.weight"}},
    {"blocks.*.attention.qkv.weight",
     {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight",
      "model.layers.*.self_attn.v_proj.weight"},
     Form::qkv},
    {"blocks.*.attention.out.weight", {"model.layers.*.self_attn.o_proj.weight"}},
    {"blocks.*.ffn_junction.norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
    {"blocks.*.ffn.in.weight",
     {"model.layers.*.mlp.up_proj.weight", "model.layers.*.mlp.gate_proj.weight"},
     Form::up_gate},
    {"blocks.*.ffn.out.weight", {"model.layers.*.mlp.down_proj.weight"}},
    {"close.norm.weight", {"model.norm.weight"}},
    {"head.weight", {"lm_head.weight"}},
};
constexpr Setting kHfLlamaFixed[] = {
    {"family", "lm"},
    {"residual", "pre"},
    {"ffn", "swiglu"},
    {"positions", "rope"},
    {"bias", "false"},
    {"norm", "rms"},
    {"attention_norm", "scheme", "none"},
};
constexpr Setting kHfLlamaDocumented[] = {{"norm_eps", "1e-06"}};
constexpr std::string_view kHfRotaryTables[] = {"model.layers.*.self_attn.rotary_emb.inv_freq",
                                                "model.rotary_emb.inv_freq"};

// A table and one entry more.
template <class Entry, size_t kCount>
constexpr std::array<Entry, kCount + 1> with(const Entry (&table)[kCount], const Entry& more) {
  std::array<Entry, kCount + 1> all{};
  std::copy(std::begin(table), std::end(table), all.begin());
  all.back() = more;
  return all;
}

// Llama with biases of q, k and v.
constexpr auto kHfQwen2 =
    with(kHfLlama, Rule{"blocks.*.attention.qkv.bias",
                        {"model.layers.*.self_attn.q_proj.bias", "model.layers.*.self_attn.k_proj.bias",
                         "model.layers.*.self_attn.v_proj.bias"},
                        Form::qkv});
constexpr auto kHfQwen2Fixed = with(kHfLlamaFixed, Setting{"qkv_bias", "true"});

// The norms stand on the outputs of the branches; those of q and k span all heads.
constexpr Rule kHfOlmo2[] = {
    {"embedding.weight", {"model.embed_tokens.weight"}},
    {"blocks.*.attention.qkv.weight",
     {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight",
      "model.layers.*.self_attn.v_proj.weight"},
     Form::qkv},
    {"blocks.*.attention.q_norm.weight", {"model.layers.*.self_attn.q_norm.weight"}},
    {"blocks.*.attention.k_norm.weight", {"model.layers.*.self_attn.k_norm.weight"}},
    {"blocks.*.attention.out.weight", {"model.layers.*.self_attn.o_proj.weight"}},
    {"blocks.*.attention_junction.output_norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
    {"blocks.*.ffn.in.weight",
     {"model.layers.*.mlp.up_proj.weight", "model.layers.*.mlp.gate_proj.weight"},
     Form::up_gate},
    {"blocks.*.ffn.out.weight", {"model.layers.*.mlp.down_proj.weight"}},
    {"blocks.*.ffn_junction.output_norm.weight", {"model.layers.*.post_feedforward_layernorm.weight"}},
    {"close.norm.weight", {"model.norm.weight"}},
    {"head.weight", {"lm_head.weight"}},
};
constexpr Setting kHfOlmo2Fixed[] = {
    {"family", "lm"},
    {"residual", "olmo2"},
    {"ffn", "swiglu"},
    {"positions", "rope"},
    {"bias", "false"},
    {"norm", "rms"},
    {"attention_norm", "scheme", "qk_full"},
};
constexpr Setting kHfOlmo2Documented[] = {{"norm_eps", "1e-05"}};
constexpr Setting kHfOlmo3Documented[] = {{"norm_eps", "1e-06"}};

// attn.bias and attn.masked_bias of old files are the causal mask.
constexpr Rule kHfGpt2[] = {
    {"embedding.weight", {"transformer.wte.weight"}},
    {"positions.weight", {"transformer.wpe.weight"}},
    {"blocks.*.attention_junction.norm.+", {"transformer.h.*.ln_1.+"}},
    {"blocks.*.attention.qkv.+", {"transformer.h.*.attn.c_attn.+"}, Form::transposed},
    {"blocks.*.attention.out.+", {"transformer.h.*.attn.c_proj.+"}, Form::transposed},
    {"blocks.*.ffn_junction.norm.+", {"transformer.h.*.ln_2.+"}},
    {"blocks.*.ffn.in.+", {"transformer.h.*.mlp.c_fc.+"}, Form::transposed},
    {"blocks.*.ffn.out.+", {"transformer.h.*.mlp.c_proj.+"}, Form::transposed},
    {"close.norm.+", {"transformer.ln_f.+"}},
    {"head.weight", {"lm_head.weight"}},
};
constexpr Setting kHfGpt2Fixed[] = {
    {"family", "lm"},
    {"residual", "pre"},
    {"ffn", "gelu_tanh"},
    {"positions", "learned"},
    {"bias", "true"},
    {"norm", "layer"},
    {"attention_norm", "scheme", "none"},
};
constexpr Setting kHfGpt2Documented[] = {{"norm_eps", "1e-05"}};
constexpr std::string_view kHfGpt2Masks[] = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};

// siamese(x=hybrid) as in official-lm. Which of the norms of q, k and v there are, and how wide, tells
// model.attention_norm: the scheme's own is all three, of a head's width.
constexpr Rule kHfSiamese[] = {
    {"embedding.weight", {"model.embed_tokens.weight"}},
    {"blocks.*.attention.qkv.weight",
     {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight",
      "model.layers.*.self_attn.v_proj.weight"},
     Form::qkv},
    {"blocks.*.attention.q_norm.weight", {"model.layers.*.self_attn.q_norm.weight"}},
    {"blocks.*.attention.k_norm.weight", {"model.layers.*.self_attn.k_norm.weight"}},
    {"blocks.*.attention.v_norm.weight", {"model.layers.*.self_attn.v_norm.weight"}},
    {"blocks.*.attention.out.weight", {"model.layers.*.self_attn.o_proj.weight"}},
    {"blocks.*.attention_junction.y_norm.weight", {"model.layers.*.siamese_attn_pre_norm.weight"}},
    {"blocks.*.attention_junction.x_scale", {"model.layers.*.siamese_hybrid_attn_scale"}},
    {"blocks.*.ffn_junction.x_norm.weight", {"model.layers.*.pre_mlp_layernorm.weight"}},
    {"blocks.*.ffn_junction.y_norm.weight", {"model.layers.*.siamese_mlp_pre_norm.weight"}},
    {"blocks.*.ffn_junction.input_norm.weight", {"model.layers.*.siamese_mlp_input_norm.weight"}},
    {"blocks.*.ffn.in.weight",
     {"model.layers.*.mlp.up_proj.weight", "model.layers.*.mlp.gate_proj.weight"},
     Form::up_gate},
    {"blocks.*.ffn.out.weight", {"model.layers.*.mlp.down_proj.weight"}},
    {"close.x_norm.weight", {"model.siamese_post_final_layernorm.weight"}},
    {"close.y_norm.weight", {"model.siamese_pre_final_layernorm.weight"}},
    {"close.norm.weight", {"model.norm.weight"}},
    {"head.weight", {"lm_head.weight"}},
};
constexpr Setting kHfSiameseFixed[] = {
    {"family", "lm"}, {"residual", "siamese(x=hybrid)"}, {"ffn", "swiglu"}, {"positions", "rope"}, {"bias", "false"},
    {"norm", "rms"},
};
constexpr Setting kHfSiameseDocumented[] = {{"norm_eps", "1e-05"}};
constexpr auto kArchspaceOlmo3Fixed = with(kHfSiameseFixed, Setting{"attention_norm", "qk_full"});

// Our names, and our model section in config.json; what python/siamesenorm/hf/modeling_siamese.py computes.
constexpr Setting kHfFixed[] = {{"family", "lm"}, {"rope_scaling", "none"}};
constexpr std::string_view kHfSchemes[] = {"pre", "siamese"};

}  // namespace

const LayoutTable& hf_llama_table() {
  static constexpr LayoutTable table{
      .rules = kHfLlama, .fixed = kHfLlamaFixed, .documented = kHfLlamaDocumented, .ignored = kHfRotaryTables};
  return table;
}

const LayoutTable& hf_qwen2_table() {
  static constexpr LayoutTable table{.rules = kHfQwen2, .fixed = kHfQwen2Fixed, .documented = kHfLlamaDocumented};
  return table;
}

// The tensors of Llama; a window of attention stands in config.json alone (hf_config.h).
const LayoutTable& hf_mistral_table() {
  static constexpr LayoutTable table{.rules = kHfLlama,
                                     .fixed = kHfLlamaFixed,
                                     .documented = kHfLlamaDocumented,
                                     .ignored = kHfRotaryTables,
                                     .windows = Windows::one};
  return table;
}

const LayoutTable& hf_olmo2_table() {
  static constexpr LayoutTable table{
      .rules = kHfOlmo2, .fixed = kHfOlmo2Fixed, .documented = kHfOlmo2Documented, .ignored = kHfRotaryTables};
  return table;
}

// The tensors of OLMo 2; which blocks have a window stands in config.json (hf_layers.h).
const LayoutTable& hf_olmo3_table() {
  static constexpr LayoutTable table{.rules = kHfOlmo2,
                                     .fixed = kHfOlmo2Fixed,
                                     .documented = kHfOlmo3Documented,
                                     .ignored = kHfRotaryTables,
                                     .windows = Windows::by_block};
  return table;
}

const LayoutTable& hf_gpt2_table() {
  static constexpr LayoutTable table{.rules = kHfGpt2,
                                     .fixed = kHfGpt2Fixed,
                                     .documented = kHfGpt2Documented,
                                     .ignored = kHfGpt2Masks,
                                     .optional_prefix = "transformer.",
                                     .all_kv_heads = true};
  return table;
}

const LayoutTable& hf_siamese_table() {
  static constexpr LayoutTable table{.rules = kHfSiamese, .fixed = kHfSiameseFixed, .documented = kHfSiameseDocumented};
  return table;
}

// SiameseNorm and Depth-Attention on OLMo 3 (the ArchSpace collection): the tensors of hf-siamese with norms of all of
// q and of k, the blocks of OLMo 3.
const LayoutTable& archspace_olmo3_table() {
  static constexpr LayoutTable table{.rules = kHfSiamese,
                                     .fixed = kArchspaceOlmo3Fixed,
                                     .documented = kHfOlmo3Documented,
                                     .ignored = kHfRotaryTables,
                                     .windows = Windows::by_block,
                                     .depth_attention = true};
  return table;
}

const LayoutTable& hf_table() {
  static constexpr LayoutTable table{.fixed = kHfFixed, .schemes = kHfSchemes};
  return table;
}

}  // namespace siamese::formats

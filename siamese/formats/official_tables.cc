// The files published with SiameseNorm (arXiv 2602.08064): a language model with OLMo's names, a DeiT with timm's, a
// DiT. All linear weights are [out, in]; qkv rows are q, then k, then v, heads contiguous inside each.
#include "siamese/formats/tables.h"

namespace siamese::formats {
namespace {

// N[X] + N[Y] at a site: the letters of docs/schemes.md, siamese(x=hybrid). ff_proj's first half is "up", its second
// "gate": silu(gate) * up, the order of ours. Norms over heads have length width / heads.
constexpr Rule kOfficialLm[] = {
    {"embedding.weight", {"transformer.wte.weight"}},
    {"blocks.*.attention.qkv.weight", {"transformer.blocks.*.att_proj.weight"}},
    {"blocks.*.attention.q_norm.weight", {"transformer.blocks.*.q_norm.weight"}},
    {"blocks.*.attention.k_norm.weight", {"transformer.blocks.*.k_norm.weight"}},
    {"blocks.*.attention.v_norm.weight", {"transformer.blocks.*.v_norm.weight"}},
    {"blocks.*.attention.out.weight", {"transformer.blocks.*.attn_out.weight"}},
    {"blocks.*.attention_junction.y_norm.weight", {"transformer.blocks.*.attn_y_norm.weight"}},
    {"blocks.*.attention_junction.x_scale", {"transformer.blocks.*.c1"}},
    {"blocks.*.ffn_junction.x_norm.weight", {"transformer.blocks.*.ff_norm.weight"}},
    {"blocks.*.ffn_junction.y_norm.weight", {"transformer.blocks.*.ff_y_norm.weight"}},
    {"blocks.*.ffn_junction.input_norm.weight", {"transformer.blocks.*.ff_input_norm.weight"}},
    {"blocks.*.ffn.in.weight", {"transformer.blocks.*.ff_proj.weight"}},
    {"blocks.*.ffn.out.weight", {"transformer.blocks.*.ff_out.weight"}},
    {"close.x_norm.weight", {"transformer.ln_f.weight"}},
    {"close.y_norm.weight", {"transformer.ln_y_f.weight"}},
    {"close.norm.weight", {"transformer.ln_final_f.weight"}},
    {"head.weight", {"transformer.ff_out.weight"}},
};
constexpr Setting kOfficialLmFixed[] = {
    {"family", "lm"},
    {"residual", "siamese(x=hybrid)"},
    {"ffn", "swiglu"},
    {"positions", "rope"},
    {"bias", "false"},
    {"norm", "rms"},
    {"attention_norm", "scheme", "qkv"},
    {"rope_scaling", "none"},
};
constexpr Setting kOfficialLmDocumented[] = {{"norm_eps", "1e-05"}};

// post_norm is P (on X), pre_norm is Q (on Y) in the blocks; at the end the two names are swapped.
constexpr Rule kOfficialDeit[] = {
    {"patch.+", {"patch_embed.proj.+"}, Form::filters},
    {"class_token", {"cls_token"}, Form::token},
    {"positions.weight", {"pos_embed"}, Form::table},
    {"blocks.*.attention_junction.x_norm.+", {"blocks.*.post_norm1.+"}},
    {"blocks.*.attention_junction.y_norm.+", {"blocks.*.pre_norm1.+"}},
    {"blocks.*.attention_junction.input_norm.+", {"blocks.*.input_norm1.+"}},
    {"blocks.*.ffn_junction.x_norm.+", {"blocks.*.post_norm2.+"}},
    {"blocks.*.ffn_junction.y_norm.+", {"blocks.*.pre_norm2.+"}},
    {"blocks.*.ffn_junction.input_norm.+", {"blocks.*.input_norm2.+"}},
    {"blocks.*.attention.qkv.+", {"blocks.*.attn.qkv.+"}},
    {"blocks.*.attention.out.+", {"blocks.*.attn.proj.+"}},
    {"blocks.*.ffn.in.+", {"blocks.*.mlp.fc1.+"}},
    {"blocks.*.ffn.out.+", {"blocks.*.mlp.fc2.+"}},
    {"close.x_norm.+", {"pre_norm.+"}},
    {"close.y_norm.+", {"post_norm.+"}},
    {"close.norm.+", {"final_norm.+"}},
    {"head.+", {"head.+"}},
};
constexpr Setting kOfficialDeitFixed[] = {
    {"family", "vit"}, {"residual", "siamese"}, {"ffn", "gelu"},
    {"bias", "true"},  {"norm", "layer"},       {"attention_norm", "scheme", "none"},
};
constexpr Setting kOfficialDeitDocumented[] = {{"norm_eps", "1e-06"}};

// Here post is on X and pre on Y at the end, too. pos_embed is a fixed table.
constexpr Rule kOfficialDit[] = {
    {"patch.+", {"x_embedder.proj.+"}, Form::filters},
    {"positions.weight", {"pos_embed"}, Form::table},
    {"timestep.in.+", {"t_embedder.mlp.0.+"}},
    {"timestep.out.+", {"t_embedder.mlp.2.+"}},
    {"labels.weight", {"y_embedder.embedding_table.weight"}},
    {"blocks.*.attention_junction.x_norm.+", {"blocks.*.postnorm1.+"}},
    {"blocks.*.attention_junction.y_norm.+", {"blocks.*.prenorm1.+"}},
    {"blocks.*.ffn_junction.x_norm.+", {"blocks.*.postnorm2.+"}},
    {"blocks.*.ffn_junction.y_norm.+", {"blocks.*.prenorm2.+"}},
    {"blocks.*.attention.qkv.+", {"blocks.*.attn.qkv.+"}},
    {"blocks.*.attention.out.+", {"blocks.*.attn.proj.+"}},
    {"blocks.*.ffn.in.+", {"blocks.*.mlp.fc1.+"}},
    {"blocks.*.ffn.out.+", {"blocks.*.mlp.fc2.+"}},
    {"blocks.*.modulation.+", {"blocks.*.adaLN_modulation.1.+"}},
    {"close.x_norm.+", {"postnorm.+"}},
    {"close.y_norm.+", {"prenorm.+"}},
    {"final.modulation.+", {"final_layer.adaLN_modulation.1.+"}},
    {"final.out.+", {"final_layer.linear.+"}},
};
constexpr Setting kOfficialDitFixed[] = {
    {"family", "dit"}, {"residual", "siamese"}, {"ffn", "gelu_tanh"},
    {"bias", "true"},  {"norm", "layer"},       {"attention_norm", "scheme", "none"},
};
constexpr Setting kOfficialDitDocumented[] = {{"norm_eps", "1e-06"}, {"label_dropout", "0.1"}};

}  // namespace

const LayoutTable& official_lm_table() {
  static constexpr LayoutTable table{
      .rules = kOfficialLm, .fixed = kOfficialLmFixed, .documented = kOfficialLmDocumented};
  return table;
}

const LayoutTable& official_deit_table() {
  static constexpr LayoutTable table{
      .rules = kOfficialDeit, .fixed = kOfficialDeitFixed, .documented = kOfficialDeitDocumented, .all_kv_heads = true};
  return table;
}

const LayoutTable& official_dit_table() {
  static constexpr LayoutTable table{
      .rules = kOfficialDit, .fixed = kOfficialDitFixed, .documented = kOfficialDitDocumented, .all_kv_heads = true};
  return table;
}

}  // namespace siamese::formats

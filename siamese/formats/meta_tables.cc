// Llama under the names that its authors gave its tensors. What RoPE turns together are neighbours in a head.
#include "siamese/formats/tables.h"

namespace siamese::formats {
namespace {

constexpr Rule kMetaLlama[] = {
    {"embedding.weight", {"tok_embeddings.weight"}},
    {"blocks.*.attention_junction.norm.weight", {"layers.*.attention_norm.weight"}},
    {"blocks.*.attention.qkv.weight",
     {"layers.*.attention.wq.weight", "layers.*.attention.wk.weight", "layers.*.attention.wv.weight"},
     Form::qkv_pairs},
    {"blocks.*.attention.out.weight", {"layers.*.attention.wo.weight"}},
    {"blocks.*.ffn_junction.norm.weight", {"layers.*.ffn_norm.weight"}},
    {"blocks.*.ffn.in.weight", {"layers.*.feed_forward.w3.weight", "layers.*.feed_forward.w1.weight"}, Form::up_gate},
    {"blocks.*.ffn.out.weight", {"layers.*.feed_forward.w2.weight"}},
    {"close.norm.weight", {"norm.weight"}},
    {"head.weight", {"output.weight"}},
};
constexpr Setting kMetaLlamaFixed[] = {
    {"family", "lm"},         {"residual", "pre"}, {"ffn", "swiglu"}, {"positions", "rope"},
    {"rope_scaling", "none"}, {"bias", "false"},   {"norm", "rms"},   {"attention_norm", "scheme", "none"},
};
constexpr Setting kMetaLlamaDocumented[] = {{"norm_eps", "1e-05"}};
constexpr std::string_view kMetaTables[] = {"rope.freqs"};

}  // namespace

const LayoutTable& meta_llama_table() {
  static constexpr LayoutTable table{
      .rules = kMetaLlama, .fixed = kMetaLlamaFixed, .documented = kMetaLlamaDocumented, .ignored = kMetaTables};
  return table;
}

}  // namespace siamese::formats

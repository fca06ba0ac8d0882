// A layout: how published files name, shape and join the tensors of a model, as one static table. A tensor of theirs is
// one of ours (docs/checkpoints.md) renamed, split, joined, transposed or reshaped; no number changes.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "siamese/base/enum_text.h"

namespace siamese::formats {

enum class Layout {
  siamese,
  official_lm,
  official_deit,
  official_dit,
  meta_llama,
  hf_llama,
  hf_olmo2,
  hf_olmo3,
  hf_gpt2,
  hf_qwen2,
  hf_mistral,
  hf_siamese,
  archspace_olmo3,
  hf
};

// d = width, f = FFN width, c = channels, p = patch, n = positions. Linear weights of ours are [out, in].
enum class Form {
  same,
  qkv,         // theirs three matrices, ours their rows: q, k, v
  qkv_pairs,   // as qkv, but what RoPE turns together are neighbours in a head of their q and k; of ours half a head
               // apart
  up_gate,     // theirs two, ours their rows: up, gate
  transposed,  // theirs [in, out] (Conv1D of GPT-2), ours [out, in]; a bias is the same
  filters,     // theirs [d, c, p, p] (a convolution), ours [d, c p p]; a bias is the same
  token,       // theirs [1, 1, d], ours [d]
  table,       // theirs [1, n, d], ours [n, d]
};

// Patterns of names: `*` is a block's number, and a last part `+` is weight or bias.
struct Rule {
  std::string_view ours;
  std::array<std::string_view, 3> theirs;  // as many as the form joins
  Form form = Form::same;
};

// model.<key>: what a file of this layout means, and another text that means the same there.
struct Setting {
  std::string_view key;
  std::string_view value;
  std::string_view alias = "";
};

// Which windows of attention a layout holds: none that is shorter than the context, one for all blocks, or one for
// those of them that its config.json lists; then also scaled rotary frequencies, in the others alone.
enum class Windows { none, one, by_block };

struct LayoutTable {
  std::span<const Rule> rules = {};                // empty: the names are ours
  std::span<const Setting> fixed = {};             // what the layout means: checked on export, the default on import
  std::span<const Setting> documented = {};        // what its authors document and no tensor tells
  std::span<const std::string_view> schemes = {};  // the only ones that it holds, with any options; empty: any
  std::span<const std::string_view> ignored = {};  // fixed tables that old files carry
  std::string_view optional_prefix = "";           // old files lack it
  bool all_kv_heads = false;                       // kv_heads = heads
  Windows windows = Windows::none;
  bool depth_attention = false;
};

const LayoutTable& table_of(Layout layout);

// The residual scheme that a file of this layout means; "" where it may be another.
std::string_view scheme_of(Layout layout);

// Layouts of folders with a config.json that transformers reads.
constexpr bool is_hugging_face(Layout layout) { return layout >= Layout::hf_llama; }

// UsageError with the known names.
Layout layout_from_text(std::string_view flag, std::string_view text);

}  // namespace siamese::formats

template <>
struct siamese::EnumText<siamese::formats::Layout> {
  static constexpr EnumNames<formats::Layout, 14> names{{{formats::Layout::siamese, "siamese"},
                                                         {formats::Layout::official_lm, "official-lm"},
                                                         {formats::Layout::official_deit, "official-deit"},
                                                         {formats::Layout::official_dit, "official-dit"},
                                                         {formats::Layout::meta_llama, "meta-llama"},
                                                         {formats::Layout::hf_llama, "hf-llama"},
                                                         {formats::Layout::hf_olmo2, "hf-olmo2"},
                                                         {formats::Layout::hf_olmo3, "hf-olmo3"},
                                                         {formats::Layout::hf_gpt2, "hf-gpt2"},
                                                         {formats::Layout::hf_qwen2, "hf-qwen2"},
                                                         {formats::Layout::hf_mistral, "hf-mistral"},
                                                         {formats::Layout::hf_siamese, "hf-siamese"},
                                                         {formats::Layout::archspace_olmo3, "archspace-olmo3"},
                                                         {formats::Layout::hf, "hf"}}};
};

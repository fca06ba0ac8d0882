// Self-attention, causal or not, with grouped key/value heads (GQA):
//   (q, k, v) = split(W_qkv x); norms as the scheme hints; RoPE on q and k; softmax(q k^T / sqrt(head_dim)) v; W_o
// x: [batch, tokens, width]. Query head j uses key/value head floor(j * kv_heads / heads).
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"
#include "siamese/nn/dropout.h"
#include "siamese/nn/init.h"
#include "siamese/nn/linear.h"
#include "siamese/nn/norm.h"
#include "siamese/nn/rotary.h"
#include "siamese/nn/value_carry.h"
#include "siamese/ops/attention.h"

namespace siamese::nn {

// Norms inside attention, before RoPE; always RMSNorm. qk and qkv act per head (gain of length head_dim, shared by the
// heads); qk_full acts on the whole projected q and k before they are split into heads.
enum class AttentionNorm { none, qk, qk_full, qkv };

struct AttentionShape {
  int64_t width = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  bool bias = false;
  bool qkv_bias = false;  // of the projection to q, k and v, without those of the output
  double norm_eps = 1e-5;
  bool causal = true;
  int64_t window = 0;  // tokens that a token sees, itself among them; 0: all before it
  ValueMixing values = {};
  int64_t blocks = 1;  // of the model; only for `values`

  int64_t head_dim() const { return width / heads; }
};

// Keys and values of the tokens seen so far, for one layer: [batch, kv_heads, capacity, head_dim]
// (ops/cached_attention.h).
struct KeyValues {
  at::Tensor keys;
  at::Tensor values;
};

class Attention {
 public:
  Attention(const Scope& scope, const AttentionShape& shape, AttentionNorm norm, const Initializer& initializer,
            int64_t block, const InitFactors& factors);

  // `rotary` may be null (learned positions). With a `cache`, the tokens follow `past` others of each sequence, which
  // it holds; without one there are none. `dropout` acts on the weights of a pass without a cache. `pieces`: documents
  // that do not see each other (pieces.h), in a pass without a cache and without dropout. `carry`: of the blocks
  // before, and then for those after (value_carry.h); may be null where values are not mixed.
  at::Tensor operator()(const at::Tensor& x, const RotaryTables* rotary, at::IntArrayRef past = {},
                        const KeyValues* cache = nullptr, const Dropout& dropout = {},
                        const std::vector<int64_t>& pieces = {}, Carry* carry = nullptr) const;

  // The heads that a pass without a cache compares, for who looks at its weights: kernels never hold those. v is that
  // of the block itself, before values are mixed.
  ops::AttentionHeads heads(const at::Tensor& x, const RotaryTables* rotary,
                            const std::vector<int64_t>& pieces = {}) const;

  const AttentionShape& shape() const { return shape_; }

 private:
  at::Tensor projected(const at::Tensor& x) const;
  ops::AttentionArguments arguments(const RotaryTables* rotary) const;
  ops::AttentionHeads heads_of(const at::Tensor& qkv, const std::vector<int64_t>& pieces,
                               ops::AttentionArguments arguments) const;
  // The projected q, k, v with v' for v. What of `arguments` was done to look at them is taken out of it.
  at::Tensor with_mixed_values(const at::Tensor& qkv, const at::Tensor& x, const std::vector<int64_t>& pieces,
                               Carry& carry, ops::AttentionArguments& arguments) const;
  // From the projected q, k, v to what the output projection reads.
  at::Tensor attended(const at::Tensor& qkv, const ops::AttentionArguments& arguments, const Dropout& dropout,
                      const std::vector<int64_t>& pieces) const;

  AttentionShape shape_;
  AttentionNorm norm_;
  Linear qkv_;
  Linear out_;
  Norm q_norm_;
  Norm k_norm_;
  Norm v_norm_;
  ValueCarry values_;
};

}  // namespace siamese::nn

template <>
struct siamese::EnumText<siamese::nn::AttentionNorm> {
  static constexpr EnumNames<nn::AttentionNorm, 4> names{{{nn::AttentionNorm::none, "none"},
                                                          {nn::AttentionNorm::qk, "qk"},
                                                          {nn::AttentionNorm::qk_full, "qk_full"},
                                                          {nn::AttentionNorm::qkv, "qkv"}}};
};

#include "siamese/nn/attention.h"

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"
#include "siamese/nn/pieces.h"
#include "siamese/ops/cached_attention.h"
#include "siamese/ops/dropped_attention.h"
#include "siamese/ops/operand.h"

namespace siamese::nn {

Attention::Attention(const Scope& scope, const AttentionShape& shape, AttentionNorm norm,
                     const Initializer& initializer, int64_t block, const InitFactors& factors)
    : shape_(shape), norm_(norm) {
  expect_that(shape.heads > 0 && shape.width % shape.heads == 0, "attention heads",
              "a divisor of the width (" + std::to_string(shape.width) + ")", shape.heads);
  expect_that(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "attention kv_heads",
              "a divisor of the heads (" + std::to_string(shape.heads) + ")", shape.kv_heads);
  const int64_t head_dim = shape.head_dim();
  const int64_t kv_width = shape.kv_heads * head_dim;
  const int64_t qkv_width = shape.width + 2 * kv_width;
  qkv_ = Linear(scope.child("qkv"), shape.width, qkv_width, shape.bias || shape.qkv_bias,
                initializer.input_projection(shape.width, qkv_width), {shape.width, kv_width, kv_width});
  scale_rows(qkv_.weight(), shape.width + kv_width, qkv_width, factors.input);
  out_ = Linear(scope.child("out"), shape.width, shape.width, shape.bias,
                initializer.output_projection(shape.width, shape.width, block, factors.depth_factor));
  scale_rows(out_.weight(), 0, shape.width, factors.output);
  values_ = ValueCarry(scope, shape.values, shape.width, shape.kv_heads, block, shape.blocks);

  const NormSpec spec{.kind = NormKind::rms, .eps = shape.norm_eps};
  if (norm == AttentionNorm::none) return;
  const bool full = norm == AttentionNorm::qk_full;
  q_norm_ = Norm(scope.child("q_norm"), full ? shape.width : head_dim, spec);
  k_norm_ = Norm(scope.child("k_norm"), full ? kv_width : head_dim, spec);
  if (norm == AttentionNorm::qkv) v_norm_ = Norm(scope.child("v_norm"), head_dim, spec);
}

// q, k and v; norms of whole rows are part of the projection, those of heads of the mixing.
at::Tensor Attention::projected(const at::Tensor& x) const {
  const at::Tensor qkv = qkv_(x);
  if (norm_ != AttentionNorm::qk_full) return qkv;
  const int64_t kv_width = shape_.kv_heads * shape_.head_dim();
  const auto parts = qkv.split_with_sizes({shape_.width, kv_width, kv_width}, -1);
  const auto normed = [](const Norm& norm, const at::Tensor& rows) {
    return norm(ops::from_operand(rows)).to(rows.scalar_type());
  };
  return at::cat({normed(q_norm_, parts[0]), normed(k_norm_, parts[1]), parts[2]}, -1);
}

ops::AttentionArguments Attention::arguments(const RotaryTables* rotary) const {
  ops::AttentionArguments arguments{.heads = shape_.heads,
                                    .kv_heads = shape_.kv_heads,
                                    .causal = shape_.causal,
                                    .window = shape_.window,
                                    .eps = shape_.norm_eps};
  if (rotary != nullptr) {
    arguments.cos = rotary->cos;
    arguments.sin = rotary->sin;
  }
  if (norm_ != AttentionNorm::qk_full) {
    arguments.q_gain = q_norm_.gain().value();  // undefined for a norm that is not there
    arguments.k_gain = k_norm_.gain().value();
    arguments.v_gain = v_norm_.gain().value();
  }
  return arguments;
}

ops::AttentionHeads Attention::heads_of(const at::Tensor& qkv, const std::vector<int64_t>& pieces,
                                        ops::AttentionArguments arguments) const {
  const int64_t batch = qkv.size(0), tokens = qkv.size(1);
  if (arguments.cos.defined() && !pieces.empty()) {  // positions start anew with each
    const at::Tensor at = piece_positions(pieces, batch, tokens).reshape({-1}).to(arguments.cos.device());
    const auto table = [&](const at::Tensor& angles) {
      return angles.index_select(0, at).reshape({batch, tokens, 1, angles.size(-1)});
    };
    arguments.cos = table(arguments.cos);
    arguments.sin = table(arguments.sin);
  }
  return ops::attention_heads(qkv, arguments);
}

ops::AttentionHeads Attention::heads(const at::Tensor& x, const RotaryTables* rotary,
                                     const std::vector<int64_t>& pieces) const {
  expect_shape("attention input", x, {-1, -1, shape_.width});
  return heads_of(projected(x), pieces, arguments(rotary));
}

at::Tensor Attention::with_mixed_values(const at::Tensor& qkv, const at::Tensor& x, const std::vector<int64_t>& pieces,
                                        Carry& carry, ops::AttentionArguments& arguments) const {
  const int64_t batch = qkv.size(0), tokens = qkv.size(1);
  if (!values_.looks_at_keys()) {
    const int64_t before = qkv.size(2) - shape_.kv_heads * shape_.head_dim();
    at::Tensor v = qkv.narrow(-1, before, qkv.size(2) - before);
    v = v.reshape({batch, tokens, shape_.kv_heads, shape_.head_dim()});
    if (arguments.v_gain.defined()) v = v_norm_(ops::from_operand(v)).to(v.scalar_type());
    arguments.v_gain = at::Tensor();
    return at::cat({qkv.narrow(-1, 0, before), values_(x, {{}, {}, v}, carry).flatten(2)}, -1);
  }
  const ops::AttentionHeads heads = heads_of(qkv, pieces, arguments);
  for (at::Tensor* const done :
       {&arguments.cos, &arguments.sin, &arguments.q_gain, &arguments.k_gain, &arguments.v_gain}) {
    *done = at::Tensor();
  }
  const at::Tensor v = values_(x, heads, carry);
  return at::cat({heads.q.flatten(2), heads.k.flatten(2), v.flatten(2)}, -1);
}

at::Tensor Attention::attended(const at::Tensor& qkv, const ops::AttentionArguments& arguments, const Dropout& dropout,
                               const std::vector<int64_t>& pieces) const {
  if (!pieces.empty()) {
    expect_that(!dropout.acts(), "attention dropout", "none within documents", 1);
    return attention_in_pieces(qkv, arguments, pieces);
  }
  if (!dropout.acts()) return ops::attention(qkv, arguments);
  const int64_t tokens = qkv.size(1);
  const at::Tensor dropped = dropout.dropped({qkv.size(0), shape_.heads, tokens, tokens}, qkv.device());
  return ops::dropped_attention(qkv, arguments, dropped, dropout.chance);
}

at::Tensor Attention::operator()(const at::Tensor& x, const RotaryTables* rotary, at::IntArrayRef past,
                                 const KeyValues* cache, const Dropout& dropout, const std::vector<int64_t>& pieces,
                                 Carry* carry) const {
  expect_shape("attention input", x, {-1, -1, shape_.width});
  if (cache == nullptr) {
    expect_that(past.empty(), "attention past", "none without a cache", static_cast<int64_t>(past.size()));
  } else {
    expect_that(pieces.empty(), "attention pieces", "none with a cache", static_cast<int64_t>(pieces.size()));
    expect_that(shape_.causal, "attention cache", "none where all tokens see one another", 1);
  }
  // The cache is float32: what was once rounded is not rounded again.
  at::Tensor qkv = cache == nullptr ? projected(x) : ops::from_operand(projected(x));
  ops::AttentionArguments with = arguments(rotary);
  if (values_.acts()) {
    expect_that(carry != nullptr, "attention carry", "one where values are mixed", 0);
    qkv = with_mixed_values(qkv, x, pieces, *carry, with);
  }
  if (cache == nullptr) return out_(attended(qkv, with, dropout, pieces));
  const at::Tensor seen = ops::cached_attention(qkv, with, cache->keys, cache->values, past);
  return out_(seen.to(x.scalar_type()));
}

}  // namespace siamese::nn

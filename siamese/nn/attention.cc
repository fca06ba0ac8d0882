#include "siamese/nn/attention.h"

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"
#include "siamese/ops/attention.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/rope.h"

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
  qkv_ = Linear(scope.child("qkv"), shape.width, qkv_width, shape.bias,
                initializer.input_projection(shape.width, qkv_width));
  scale_rows(qkv_.weight(), shape.width + kv_width, qkv_width, factors.input);
  out_ = Linear(scope.child("out"), shape.width, shape.width, shape.bias,
                initializer.output_projection(shape.width, shape.width, block, factors.depth_factor));
  scale_rows(out_.weight(), 0, shape.width, factors.output);

  const NormSpec spec{.kind = NormKind::rms, .eps = shape.norm_eps};
  if (norm == AttentionNorm::none) return;
  const bool full = norm == AttentionNorm::qk_full;
  q_norm_ = Norm(scope.child("q_norm"), full ? shape.width : head_dim, spec);
  k_norm_ = Norm(scope.child("k_norm"), full ? kv_width : head_dim, spec);
  if (norm == AttentionNorm::qkv) v_norm_ = Norm(scope.child("v_norm"), head_dim, spec);
}

// All tokens at once, nothing cached: one fused op between the projections.
at::Tensor Attention::mixed(at::Tensor qkv, const RotaryTables* rotary) const {
  ops::AttentionArguments arguments{
      .heads = shape_.heads, .kv_heads = shape_.kv_heads, .causal = shape_.causal, .eps = shape_.norm_eps};
  if (rotary != nullptr) {
    arguments.cos = rotary->cos;
    arguments.sin = rotary->sin;
  }
  if (norm_ == AttentionNorm::qk_full) {
    const int64_t kv_width = shape_.kv_heads * shape_.head_dim();
    const auto parts = qkv.split_with_sizes({shape_.width, kv_width, kv_width}, -1);
    const auto normed = [](const Norm& norm, const at::Tensor& x) {
      return norm(ops::from_operand(x)).to(x.scalar_type());
    };
    qkv = at::cat({normed(q_norm_, parts[0]), normed(k_norm_, parts[1]), parts[2]}, -1);
  } else {
    arguments.q_gain = q_norm_.gain().value();  // undefined for a norm that is not there
    arguments.k_gain = k_norm_.gain().value();
    arguments.v_gain = v_norm_.gain().value();
  }
  return ops::attention(qkv, arguments);
}

at::Tensor Attention::operator()(const at::Tensor& x, const RotaryTables* rotary, int64_t past,
                                 KeyValues* cache) const {
  expect_shape("attention input", x, {-1, -1, shape_.width});
  if (cache == nullptr) {
    expect_that(past == 0, "attention past", "0 without a cache", past);
    return out_(mixed(qkv_(x), rotary));
  }
  const int64_t batch = x.size(0);
  const int64_t tokens = x.size(1);
  for (const auto& held : {cache->keys, cache->values}) {
    expect_shape("attention cache", held, {batch, shape_.kv_heads, -1, shape_.head_dim()});
    expect_that(past >= 0 && past + tokens <= held.size(2), "attention past",
                "at most the cache's " + std::to_string(held.size(2)) + " tokens with these " + std::to_string(tokens),
                past);
  }
  const int64_t head_dim = shape_.head_dim();
  const int64_t kv_width = shape_.kv_heads * head_dim;
  const at::Tensor qkv = ops::from_operand(qkv_(x));
  at::Tensor q = qkv.narrow(-1, 0, shape_.width);
  at::Tensor k = qkv.narrow(-1, shape_.width, kv_width);
  at::Tensor v = qkv.narrow(-1, shape_.width + kv_width, kv_width);
  if (norm_ == AttentionNorm::qk_full) {
    q = q_norm_(q);
    k = k_norm_(k);
  }
  q = q.reshape({batch, tokens, shape_.heads, head_dim});
  k = k.reshape({batch, tokens, shape_.kv_heads, head_dim});
  v = v.reshape({batch, tokens, shape_.kv_heads, head_dim});
  if (norm_ == AttentionNorm::qk || norm_ == AttentionNorm::qkv) {
    q = q_norm_(q);
    k = k_norm_(k);
    v = v_norm_(v);  // the identity unless qkv
  }
  if (rotary != nullptr) {
    q = ops::rope(q, rotary->cos, rotary->sin);
    k = ops::rope(k, rotary->cos, rotary->sin);
  }
  q = q.transpose(1, 2);
  k = k.transpose(1, 2);
  v = v.transpose(1, 2);
  cache->keys.narrow(2, past, tokens).copy_(k);
  cache->values.narrow(2, past, tokens).copy_(v);
  k = cache->keys.narrow(2, 0, past + tokens);
  v = cache->values.narrow(2, 0, past + tokens);
  return out_(ops::cached_attention(q, k, v).to(x.scalar_type()));
}

}  // namespace siamese::nn

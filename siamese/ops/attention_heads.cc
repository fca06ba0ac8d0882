#include "siamese/ops/attention_heads.h"

#include <ATen/ATen.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/rope.h"

namespace siamese::ops {
namespace attention_heads_detail {

void check(const at::Tensor& qkv, const AttentionArguments& given) {
  const Arguments arguments("attention_heads", "qkv", qkv);
  arguments.rank("qkv", qkv, 3);
  arguments.require(given.kv_heads >= 1, "kv_heads", "at least 1", std::to_string(given.kv_heads));
  arguments.require(given.heads >= 1 && given.heads % given.kv_heads == 0, "heads",
                    "a multiple of kv_heads " + std::to_string(given.kv_heads), std::to_string(given.heads));
  const int64_t all = given.heads + 2 * given.kv_heads;
  arguments.require(qkv.size(2) % all == 0, "qkv", "a last dimension of " + std::to_string(all) + " heads",
                    "shape " + shape_text(qkv.sym_sizes()));
}

// rows: [batch, tokens, heads, head_dim]
at::Tensor rotated(const at::Tensor& rows, const AttentionArguments& by) {
  const at::Tensor x = rows.to(by.cos.scalar_type());
  if (by.cos.dim() != 4) return rope(x, by.cos, by.sin);
  // With tables of each sequence, the tokens of all are those of one.
  const auto flat = [](const at::Tensor& table) { return table.reshape({-1, 1, table.size(-1)}); };
  const at::Tensor together = x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3)});
  return rope(together, flat(by.cos), flat(by.sin)).view(x.sizes());
}

}  // namespace attention_heads_detail

AttentionHeads attention_heads(const at::Tensor& qkv, const AttentionArguments& arguments) {
  using namespace attention_heads_detail;
  check(qkv, arguments);
  const int64_t batch = qkv.size(0), tokens = qkv.size(1), kv_heads = arguments.kv_heads;
  const int64_t head_dim = qkv.size(2) / (arguments.heads + 2 * kv_heads);
  const auto parts = qkv.split_with_sizes({arguments.heads * head_dim, kv_heads * head_dim, kv_heads * head_dim}, -1);
  const auto heads = [&](const at::Tensor& part, const at::Tensor& gain, bool rotates) {
    at::Tensor rows = part.reshape({batch, tokens, part.size(2) / head_dim, head_dim});
    if (gain.defined()) rows = rms_norm(rows.to(gain.scalar_type()), gain, arguments.eps);
    if (rotates && arguments.cos.defined()) rows = rotated(rows, arguments);
    return rows.to(qkv.scalar_type());
  };
  return {heads(parts[0], arguments.q_gain, true), heads(parts[1], arguments.k_gain, true),
          heads(parts[2], arguments.v_gain, false)};
}

}  // namespace siamese::ops

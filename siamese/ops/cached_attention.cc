// Attention to cached keys and values (ops/attention.h). One part without a backward: whoever asks for its gradient is
// told that there is none.
#include <algorithm>

#include <ATen/ATen.h>

#include "siamese/kernels/partition.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/attention.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {
namespace cached_attention_op {

void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  Arguments arguments("cached_attention", "q", q);
  arguments.rank("q", q, 4).rank("k", k, 4);
  const c10::SymInt kv_heads = k.sym_size(1);
  arguments.shape("k", k, {q.sym_size(0), kv_heads, k.sym_size(2), q.sym_size(3)}).shape("v", v, k.sym_sizes());
  arguments.require(kv_heads >= 1, "k", "at least one head", "shape " + shape_text(k.sym_sizes()));
  arguments.require(q.sym_size(1) % kv_heads == 0, "q", "heads that are a multiple of those of k",
                    "shape " + shape_text(q.sym_sizes()) + " beside " + shape_text(k.sym_sizes()));
  arguments.require(k.sym_size(2) >= q.sym_size(2), "k", "at least the tokens of q",
                    "shape " + shape_text(k.sym_sizes()) + " beside " + shape_text(q.sym_sizes()));
}

using Mask = std::optional<at::Tensor>;

// One new token needs no mask, a later chunk a shifted triangle.
Mask mask_of(const at::Tensor& q, const at::Tensor& k) {
  const int64_t tokens = q.size(2), all = k.size(2);
  if (all == tokens || tokens <= 1) return std::nullopt;
  return at::ones({tokens, all}, q.options().dtype(at::kBool)).tril(all - tokens);
}

at::Tensor mixed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Mask& mask) {
  const int64_t tokens = q.size(2), all = k.size(2);
  return at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, /*is_causal=*/all == tokens && tokens > 1,
                                          std::nullopt, /*enable_gqa=*/q.size(1) != k.size(1))
      .transpose(1, 2);
}

at::Tensor empty_result(const at::Tensor& q) {
  return at::empty_symint({q.sym_size(0), q.sym_size(2), q.sym_size(1) * q.sym_size(3)}, q.options());
}

at::Tensor plain_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  check(q, k, v);
  at::Tensor out = empty_result(q);
  if (out.numel() == 0) return out;
  const OneThread one_thread;
  out.view({q.size(0), q.size(2), q.size(1), q.size(3)}).copy_(mixed(q, k, v, mask_of(q, k)));
  return out;
}

// The same on parts of the heads.
at::Tensor fused_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  check(q, k, v);
  if (!use_fused("cached_attention", {q})) return plain_forward(q, k, v);
  at::Tensor out = empty_result(q);
  if (out.numel() == 0) return out;
  const int64_t kv_heads = k.size(1), group = q.size(1) / kv_heads;
  constexpr int64_t kPartWork = int64_t{1} << 20;  // multiply-adds
  const int64_t work = 2 * q.numel() * k.size(2);
  const kernels::Partition parts{kv_heads, std::clamp<int64_t>(work / kPartWork, 1, kv_heads)};
  const at::Tensor by_heads = out.view({q.size(0), q.size(2), q.size(1), q.size(3)});
  const Mask mask = mask_of(q, k);
  for_each_task(parts.parts, [&](int64_t part) {
    const int64_t first = parts.begin(part);
    const int64_t count = parts.end(part) - first;
    by_heads.narrow(2, first * group, count * group)
        .copy_(mixed(q.narrow(1, first * group, count * group), k.narrow(1, first, count), v.narrow(1, first, count),
                     mask));
  });
  return out;
}

at::Tensor meta_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  check(q, k, v);
  return empty_result(q);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_part(library, "cached_attention(Tensor q, Tensor k, Tensor v) -> Tensor", plain_forward, fused_forward,
              meta_forward);
}

}  // namespace cached_attention_op

at::Tensor cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const PartScope scope("part::attention");
  static const auto op = find_op("cached_attention", cached_attention_op::fused_forward);
  return op.call(q, k, v);
}

}  // namespace siamese::ops

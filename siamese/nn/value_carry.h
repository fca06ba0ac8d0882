// Values of earlier blocks beside a block's own, at the same token, before attention. In block l, with its input z:
//   half     v' = (v_0 + v_l) / 2                                          ResFormer (arXiv 2410.17897); l >= 1
//   learned  v' = (1 - m) v_0 + m v_l,   m = sigmoid(W z + b)              of each token and key/value head; l >= 1
//   depth    a = softmax over j in S_l and l of <mean of q_l over the query heads of a group, k_j> / sqrt(head_dim)
//            v' = sum over j in S_l of a_j v'_j + a_l v_l                  Depth-Attention (arXiv 2606.05014)
//            S_l = { j < l: j % stride == 0 or j >= l - recent }
// q, k and v are those that attention uses, after its norms and RoPE; attention then takes v' for v, and so do a cache
// of keys and values and the later blocks. In block 0 v' = v.
// What later blocks need goes from block to block as a list of tensors, the carry: v_0; or k_j and v'_j of each j in S
// of the next block. It belongs to the tokens of one pass: a token needs nothing of another's.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"
#include "siamese/nn/parameters.h"
#include "siamese/ops/attention_heads.h"

namespace siamese::nn {

enum class ValueResidual { none, half, learned };

// At most one of the two.
struct ValueMixing {
  ValueResidual residual = ValueResidual::none;
  int64_t depth_stride = 0;  // of Depth-Attention; 0: none
  int64_t depth_recent = 0;

  bool acts() const { return residual != ValueResidual::none || depth_stride > 0; }
};

using Carry = std::vector<at::Tensor>;

// S_l, ascending.
std::vector<int64_t> depth_sources(const ValueMixing& mixing, int64_t block);

class ValueCarry {
 public:
  ValueCarry() = default;  // attention takes its own values
  // Of one block of `blocks`; `scope` is that of its attention.
  ValueCarry(const Scope& scope, const ValueMixing& mixing, int64_t width, int64_t kv_heads, int64_t block,
             int64_t blocks);

  bool acts() const { return mixing_.acts(); }
  // Whether it needs q and k, or v alone.
  bool looks_at_keys() const { return mixing_.depth_stride > 0; }

  // v', of the shape of heads.v; `carry` is what the blocks before left, and becomes what those after get. z: the input
  // of attention, [batch, tokens, width].
  at::Tensor operator()(const at::Tensor& z, const ops::AttentionHeads& heads, Carry& carry) const;

 private:
  at::Tensor residual(const at::Tensor& z, const at::Tensor& v, Carry& carry) const;
  at::Tensor depth(const ops::AttentionHeads& heads, Carry& carry) const;

  ValueMixing mixing_;
  int64_t block_ = 0;
  int64_t blocks_ = 0;
  Slot gate_weight_;  // learned, from block 1 on
  Slot gate_bias_;
};

}  // namespace siamese::nn

template <>
struct siamese::EnumText<siamese::nn::ValueResidual> {
  static constexpr EnumNames<nn::ValueResidual, 3> names{
      {{nn::ValueResidual::none, "none"}, {nn::ValueResidual::half, "half"}, {nn::ValueResidual::learned, "learned"}}};
};

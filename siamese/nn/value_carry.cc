#include "siamese/nn/value_carry.h"

#include <cmath>

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"
#include "siamese/ops/depth_attend.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/wide.h"

namespace siamese::nn {

std::vector<int64_t> depth_sources(const ValueMixing& mixing, int64_t block) {
  std::vector<int64_t> sources;
  for (int64_t j = 0; j < block; ++j) {
    if (j % mixing.depth_stride == 0 || j >= block - mixing.depth_recent) sources.push_back(j);
  }
  return sources;
}

ValueCarry::ValueCarry(const Scope& scope, const ValueMixing& mixing, int64_t width, int64_t kv_heads, int64_t block,
                       int64_t blocks)
    : mixing_(mixing), block_(block), blocks_(blocks) {
  expect_that(mixing.depth_stride >= 0 && mixing.depth_recent >= 0, "depth attention", "a stride and a window >= 0",
              mixing.depth_stride < 0 ? mixing.depth_stride : mixing.depth_recent);
  expect_that(mixing.residual == ValueResidual::none || mixing.depth_stride == 0, "depth attention stride",
              "0 with a value residual", mixing.depth_stride);
  if (mixing.residual != ValueResidual::learned || block == 0) return;
  const Init init = Init::uniform(1 / std::sqrt(static_cast<double>(width)));  // PyTorch's default
  const Scope gate = scope.child("value_gate");
  gate_weight_ = gate.add("weight", ParameterKind::linear, {kv_heads, width}, init);
  gate_bias_ = gate.add("bias", ParameterKind::bias, {kv_heads}, init);
}

at::Tensor ValueCarry::operator()(const at::Tensor& z, const ops::AttentionHeads& heads, Carry& carry) const {
  return looks_at_keys() ? depth(heads, carry) : residual(z, heads.v, carry);
}

at::Tensor ValueCarry::residual(const at::Tensor& z, const at::Tensor& given, Carry& carry) const {
  const at::Tensor v = given.contiguous();  // of the projected rows a part, and read by every later block
  if (block_ == 0) {
    if (blocks_ > 1) carry = {v};
    return v;
  }
  expect_that(carry.size() == 1, "carry", "the values of block 0", static_cast<int64_t>(carry.size()));
  const at::Tensor first = carry[0];
  if (block_ + 1 == blocks_) carry.clear();
  if (mixing_.residual == ValueResidual::half) {
    return ((ops::wide(first) + ops::wide(v)) * 0.5).to(v.scalar_type());
  }
  // sigmoid(s) and 1 - sigmoid(s) are the softmax of s and 0: the query s and the keys 1 and 0, of one number each.
  const at::Tensor score = ops::linear(z, gate_weight_.value(), gate_bias_.value()).to(v.scalar_type()).unsqueeze(-1);
  return ops::depth_attend(score, {at::zeros_like(score), at::ones_like(score)}, {first, v});
}

at::Tensor ValueCarry::depth(const ops::AttentionHeads& heads, Carry& carry) const {
  const std::vector<int64_t> sources = depth_sources(mixing_, block_);
  expect_that(carry.size() == 2 * sources.size(), "carry",
              "keys and values of " + std::to_string(sources.size()) + " blocks", static_cast<int64_t>(carry.size()));
  std::vector<at::Tensor> keys, values;
  for (size_t i = 0; i < sources.size(); ++i) {
    keys.push_back(carry[2 * i]);
    values.push_back(carry[2 * i + 1]);
  }
  keys.push_back(heads.k.contiguous());
  values.push_back(heads.v.contiguous());
  const at::Tensor mixed = sources.empty() ? values.back() : ops::depth_attend(heads.q, keys, values);
  values.back() = mixed;
  carry.clear();
  if (block_ + 1 == blocks_) return mixed;
  // Every source of the next block is one of this block's, or this block.
  const std::vector<int64_t> next = depth_sources(mixing_, block_ + 1);
  size_t wanted = 0;
  for (size_t i = 0; i < keys.size() && wanted < next.size(); ++i) {
    if ((i < sources.size() ? sources[i] : block_) != next[wanted]) continue;
    carry.insert(carry.end(), {keys[i], values[i]});
    ++wanted;
  }
  return mixed;
}

}  // namespace siamese::nn

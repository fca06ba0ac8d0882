// A Pre-Norm language model written out with ATen alone, on the parameters of a model by name: attention with each kind
// of norm, windows and scaled rotary frequencies by block, and values of earlier blocks (nn/value_carry.h).
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/tensors.h"

#include <ATen/ATen.h>

#include "siamese/models/config.h"
#include "siamese/models/model.h"
#include "siamese/models/rope_scaling.h"
#include "siamese/nn/rope_scaling.h"

namespace siamese::models {

class WrittenOutLm {
 public:
  WrittenOutLm(const Model& model, const ModelConfig& config) : model_(model), config_(config) {}

  // tokens [batch, n] -> hidden [batch, n, width]
  at::Tensor hidden(const at::Tensor& tokens) const {
    at::Tensor h = p("embedding.weight").index({tokens});
    if (config_.positions == Positions::learned) h = h + p("positions.weight").slice(0, 0, tokens.size(1));
    std::vector<at::Tensor> keys, values;  // k_j and v'_j of all blocks, [batch, kv_heads, n, head_dim]
    for (int64_t l = 0; l < config_.blocks; ++l) {
      const std::string block = "blocks." + std::to_string(l) + ".";
      h = h + attention(l, rms(h, p(block + "attention_junction.norm.weight")), keys, values);
      const at::Tensor z = rms(h, p(block + "ffn_junction.norm.weight"));
      const auto halves = at::matmul(z, p(block + "ffn.in.weight").t()).chunk(2, -1);  // up, gate
      h = h + at::matmul(halves[0] * halves[1] * at::sigmoid(halves[1]), p(block + "ffn.out.weight").t());
    }
    return rms(h, p("close.norm.weight"));
  }

 private:
  at::Tensor p(const std::string& name) const {
    const auto* const found = model_.parameters().find(name);
    EXPECT_NE(found, nullptr) << name;
    return found->value;
  }
  bool has(const std::string& name) const { return model_.parameters().find(name) != nullptr; }
  at::Tensor rms(const at::Tensor& x, const at::Tensor& gain) const {
    return x / ((x * x).mean(-1, true) + config_.norm_eps).sqrt() * gain;
  }
  // x: [batch, heads, n, head_dim]
  at::Tensor rotated(const at::Tensor& x, int64_t block) const {
    if (config_.positions != Positions::rope) return x;
    const int64_t half = x.size(3) / 2;
    const bool slides =
        config_.window > 0 && config_.window_pattern[static_cast<size_t>(block) % config_.window_pattern.size()] == 'S';
    nn::RopeScaling scaling = rope_scaling_of(config_.rope_scaling);
    if (config_.rope_scaling_layers == RopeScalingLayers::full && slides) scaling = {};
    std::vector<double> frequencies;
    for (int64_t j = 0; j < half; ++j) {
      frequencies.push_back(
          std::pow(config_.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(2 * half)));
    }
    double magnitude = 1;
    if (scaling.kind != nn::RopeScalingKind::none) {
      frequencies = nn::rotary_frequencies(2 * half, config_.rope_theta, scaling);
      magnitude = nn::rotary_magnitude(scaling);
    }
    const at::Tensor angle = at::outer(at::arange(x.size(2), at::kDouble), at::tensor(frequencies, at::kDouble));
    const at::Tensor cos = angle.cos() * magnitude, sin = angle.sin() * magnitude;
    const at::Tensor a = x.slice(3, 0, half), b = x.slice(3, half);
    return at::cat({a * cos - b * sin, b * cos + a * sin}, -1);
  }
  at::Tensor attention(int64_t l, const at::Tensor& z, std::vector<at::Tensor>& keys,
                       std::vector<at::Tensor>& values) const {
    const std::string name = "blocks." + std::to_string(l) + ".attention.";
    const int64_t batch = z.size(0), n = z.size(1), width = config_.width, hd = width / config_.heads;
    const int64_t kv_width = config_.kv_heads * hd, group = config_.heads / config_.kv_heads;
    const at::Tensor qkv = at::matmul(z, p(name + "qkv.weight").t());
    at::Tensor q = qkv.slice(2, 0, width), k = qkv.slice(2, width, width + kv_width),
               v = qkv.slice(2, width + kv_width);
    const bool full = has(name + "q_norm.weight") && p(name + "q_norm.weight").size(0) == width && hd != width;
    if (full) {
      q = rms(q, p(name + "q_norm.weight"));
      k = rms(k, p(name + "k_norm.weight"));
    }
    const auto heads = [&](const at::Tensor& x) { return x.reshape({batch, n, -1, hd}).transpose(1, 2); };
    q = heads(q);
    k = heads(k);
    v = heads(v);
    if (!full && has(name + "q_norm.weight")) {
      q = rms(q, p(name + "q_norm.weight"));
      k = rms(k, p(name + "k_norm.weight"));
    }
    if (has(name + "v_norm.weight")) v = rms(v, p(name + "v_norm.weight"));
    q = rotated(q, l);
    k = rotated(k, l);
    v = mixed(l, z, q, k, v, keys, values);
    keys.push_back(k);
    values.push_back(v);
    at::Tensor out = at::zeros({batch, 0, n, hd}, z.options());
    const at::Tensor ago = at::arange(n).unsqueeze(1) - at::arange(n);
    const int64_t window = config_.window_of(l) > 0 ? config_.window_of(l) : n;
    for (int64_t head = 0; head < config_.heads; ++head) {
      const at::Tensor scores =
          at::matmul(q.select(1, head), k.select(1, head / group).transpose(1, 2)) / std::sqrt(static_cast<double>(hd));
      const at::Tensor seen = scores.masked_fill(ago.lt(0).logical_or(ago.ge(window)), -INFINITY);
      out = at::cat({out, at::matmul(at::softmax(seen, -1), v.select(1, head / group)).unsqueeze(1)}, 1);
    }
    return at::matmul(out.transpose(1, 2).reshape({batch, n, width}), p(name + "out.weight").t());
  }
  at::Tensor mixed(int64_t l, const at::Tensor& z, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const std::vector<at::Tensor>& keys, const std::vector<at::Tensor>& values) const {
    if (l == 0) return v;
    if (config_.value_residual == nn::ValueResidual::half) return 0.5 * values[0] + 0.5 * v;
    if (config_.value_residual == nn::ValueResidual::learned) {
      const std::string name = "blocks." + std::to_string(l) + ".attention.value_gate.";
      const at::Tensor logits = at::matmul(z, p(name + "weight").t()) + p(name + "bias");
      const at::Tensor m = (1 / (1 + (-logits).exp())).transpose(1, 2).unsqueeze(-1);
      // The values of block 0 as they were: it mixes nothing.
      return (1 - m) * values[0] + m * v;
    }
    const int64_t stride = config_.depth_attention_stride;
    if (stride == 0) return v;
    const int64_t group = config_.heads / config_.kv_heads;
    const at::Tensor mean = q.reshape({q.size(0), config_.kv_heads, group, q.size(2), q.size(3)}).mean(2);
    at::Tensor total = at::zeros({}, at::kDouble), sum = at::zeros({}, at::kDouble);
    for (int64_t j = 0; j <= l; ++j) {
      if (j < l && j % stride != 0 && j < l - config_.depth_attention_recent) continue;
      const auto at = static_cast<size_t>(j);
      const at::Tensor key = j < l ? keys[at] : k, value = j < l ? values[at] : v;
      const at::Tensor weight = ((mean * key).sum(-1, true) / std::sqrt(static_cast<double>(k.size(3)))).exp();
      total = total + weight;
      sum = sum + weight * value;
    }
    return sum / total;
  }

  const Model& model_;
  const ModelConfig& config_;
};

}  // namespace siamese::models

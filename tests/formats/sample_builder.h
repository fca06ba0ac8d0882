// What the samples of all layouts are made with.
#pragma once

#include "tests/formats/samples.h"
#include "tests/support/tensors.h"

namespace siamese::formats {

using Shape = std::vector<int64_t>;

class Builder {
 public:
  Builder(Sample& sample, at::ScalarType dtype) : sample_(sample), dtype_(dtype) {}

  void same(const std::string& ours, const std::string& theirs, const Shape& shape) {
    const at::Tensor value = fresh(shape);
    put(ours, value);
    theirs_is(theirs, value);
  }
  // A weight and its bias.
  void both(const std::string& ours, const std::string& theirs, const Shape& weight) {
    same(ours + ".weight", theirs + ".weight", weight);
    same(ours + ".bias", theirs + ".bias", {weight.front()});
  }
  // Theirs: matrices of these rows (without columns: vectors); ours: one under the other.
  void rows(const std::string& ours, const std::vector<std::pair<std::string, int64_t>>& theirs, int64_t cols) {
    std::vector<at::Tensor> parts;
    for (const auto& [name, count] : theirs) {
      parts.push_back(fresh(cols > 0 ? Shape{count, cols} : Shape{count}));
      theirs_is(name, parts.back());
    }
    put(ours, at::cat(parts));
  }
  // Theirs matrices of these rows, whose heads of width 4 have what RoPE turns together side by side but for the last;
  // of ours they are two rows apart.
  void paired_rows(const std::string& ours, const std::vector<std::pair<std::string, int64_t>>& theirs, int64_t cols) {
    std::vector<at::Tensor> parts;
    for (const auto& [name, count] : theirs) {
      const at::Tensor value = fresh({count, cols});
      theirs_is(name, value);
      if (parts.size() == 2) {
        parts.push_back(value);
        continue;
      }
      at::Tensor apart = at::empty_like(value);
      for (int64_t head = 0; head < count; head += 4) {
        for (const auto& [to, from] : {std::pair{0, 0}, {1, 2}, {2, 1}, {3, 3}}) {
          apart[head + to].copy_(value[head + from]);
        }
      }
      parts.push_back(apart);
    }
    put(ours, at::cat(parts));
  }
  // Theirs [in, out].
  void flipped(const std::string& ours, const std::string& theirs, int64_t out, int64_t in) {
    const at::Tensor value = fresh({in, out});
    const at::Tensor turned = at::empty({out, in}, value.options());
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t o = 0; o < out; ++o) turned[o][i] = value[i][o];
    }
    theirs_is(theirs + ".weight", value);
    put(ours + ".weight", turned);
    same(ours + ".bias", theirs + ".bias", {out});
  }
  // The same numbers in the same order.
  void folded(const std::string& ours, const std::string& theirs, const Shape& our_shape, const Shape& their_shape) {
    const at::Tensor value = fresh(our_shape);
    put(ours, value);
    theirs_is(theirs, value.reshape(their_shape));
  }

 private:
  at::Tensor fresh(const Shape& shape) { return siamese::testing::randn(shape, ++seed_, dtype_); }
  void put(const std::string& name, const at::Tensor& value) { sample_.ours.push_back({name, value}); }
  void theirs_is(const std::string& name, const at::Tensor& value) { sample_.theirs.push_back({name, value}); }

  Sample& sample_;
  at::ScalarType dtype_;
  uint64_t seed_ = 0;
};

inline std::string block_name(const std::string& before, int64_t block, const std::string& after) {
  return before + std::to_string(block) + after;
}

inline models::ModelConfig text_config(const std::string& residual, bool tied) {
  models::ModelConfig config;
  config.residual = residual;
  config.width = 12;
  config.blocks = 2;
  config.heads = 6;
  config.kv_heads = 2;
  config.ffn_width = 7;
  config.vocab = 11;
  config.tied = tied;
  config.rope_theta = 5000;
  return config;
}

inline void hf_sublayers(Builder& build, const std::string& ours, const std::string& theirs, int64_t key_rows) {
  build.rows(ours + "attention.qkv.weight",
             {{theirs + "self_attn.q_proj.weight", 12},
              {theirs + "self_attn.k_proj.weight", key_rows},
              {theirs + "self_attn.v_proj.weight", key_rows}},
             12);
  build.same(ours + "attention.out.weight", theirs + "self_attn.o_proj.weight", {12, 12});
  build.rows(ours + "ffn.in.weight", {{theirs + "mlp.up_proj.weight", 7}, {theirs + "mlp.gate_proj.weight", 7}}, 12);
  build.same(ours + "ffn.out.weight", theirs + "mlp.down_proj.weight", {12, 7});
}

// Llama and what has its form (llama_samples.cc).
std::vector<Sample> llama_samples(at::ScalarType dtype);

}  // namespace siamese::formats

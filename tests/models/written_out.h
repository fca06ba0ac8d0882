// The published block equations, written out once more with ATen alone, on the parameters of a model by name.
#pragma once

#include <cmath>
#include <string>

#include <ATen/ATen.h>

#include "siamese/models/model.h"

namespace siamese::models {

class WrittenOut {
 public:
  WrittenOut(const Model& model, int64_t heads) : model_(model), heads_(heads) {}

  at::Tensor p(const std::string& name) const {
    const auto* const found = model_.parameters().find(name);
    EXPECT_NE(found, nullptr) << name;
    return found->value;
  }
  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::matmul(x, p(name + ".weight").t()) + p(name + ".bias");
  }
  static at::Tensor standardised(const at::Tensor& x) {
    const at::Tensor centred = x - x.mean(-1, true);
    return centred / ((centred * centred).mean(-1, true) + 1e-6).sqrt();
  }
  at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    return standardised(x) * p(name + ".weight") + p(name + ".bias");
  }
  at::Tensor attention(int64_t block, const at::Tensor& x) const {
    const std::string name = "blocks." + std::to_string(block) + ".attention";
    const int64_t batch = x.size(0), tokens = x.size(1), width = x.size(2), head = width / heads_;
    const auto parts = linear(name + ".qkv", x).chunk(3, -1);
    const auto split = [&](const at::Tensor& t) { return t.reshape({batch, tokens, heads_, head}).transpose(1, 2); };
    const at::Tensor scores =
        at::matmul(split(parts[0]), split(parts[1]).transpose(2, 3)) / std::sqrt(static_cast<double>(head));
    const at::Tensor mixed = at::matmul(at::softmax(scores, -1), split(parts[2]));
    return linear(name + ".out", mixed.transpose(1, 2).reshape({batch, tokens, width}));
  }
  at::Tensor feed_forward(int64_t block, const at::Tensor& x, const char* gelu) const {
    const std::string name = "blocks." + std::to_string(block) + ".ffn";
    return linear(name + ".out", at::gelu(linear(name + ".in", x), gelu));
  }
  // Patch by patch: every filter's product with the pixels it lies on.
  at::Tensor patches(const at::Tensor& images, int64_t patch) const {
    const int64_t grid = images.size(2) / patch;
    std::vector<at::Tensor> tokens;
    for (int64_t i = 0; i < grid * grid; ++i) {
      const at::Tensor pixels = images.narrow(2, i / grid * patch, patch).narrow(3, i % grid * patch, patch);
      tokens.push_back(linear("patch", pixels.reshape({images.size(0), -1})));
    }
    return at::stack(tokens, 1);
  }

 private:
  const Model& model_;
  int64_t heads_;
};

// Value and every parameter's gradient of both.
inline void expect_same_function(const Model& model, const at::Tensor& got, const at::Tensor& wanted,
                                 const std::string& what) {
  testing::expect_relative(got, wanted, 1e-12, what);
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : model.parameters().list()) parameters.push_back(parameter.value);
  const auto got_gradients = testing::gradients(got, parameters);
  const auto wanted_gradients = testing::gradients(wanted, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string name = what + " " + model.parameters().list()[i].name;
    ASSERT_EQ(got_gradients[i].defined(), wanted_gradients[i].defined()) << name;
    if (got_gradients[i].defined()) testing::expect_relative(got_gradients[i], wanted_gradients[i], 1e-11, name);
  }
}

}  // namespace siamese::models

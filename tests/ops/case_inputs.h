// The inputs of an op's case in the forms that the tests of all ops ask for, and what comes back to them.
#pragma once

#include <string>

#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace siamese::ops {

constexpr uint64_t kAll = ~uint64_t{0};

inline bool differentiable(const at::Tensor& tensor) { return tensor.is_floating_point(); }

// The inputs in a type; those whose bit is set in `wanted` are leaves that require a gradient, tables never.
inline Tensors inputs_of(const OpCase& test, at::ScalarType type, uint64_t wanted) {
  Tensors inputs;
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    const at::Tensor& input = test.inputs[i];
    if (!differentiable(input)) {
      inputs.push_back(input);
      continue;
    }
    inputs.push_back(input.to(type).detach().clone().set_requires_grad((wanted & ~test.constant) >> i & 1));
  }
  return inputs;
}

// Gradients of the outputs whose bit is set, with the same random weights for both; undefined where none came.
inline Tensors gradients_from(const Tensors& outputs, const Tensors& inputs, uint64_t from) {
  Tensors roots, weights, sources;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if ((from >> i & 1) == 0 || !outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    weights.push_back(testing::randn(outputs[i].sizes(), 100 + i, outputs[i].scalar_type()));
  }
  for (const auto& input : inputs) {
    if (input.requires_grad()) sources.push_back(input);
  }
  Tensors found(sources.size());
  if (!roots.empty() && !sources.empty()) {
    found = torch::autograd::grad(roots, sources, weights, /*retain_graph=*/true, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  }
  Tensors result;
  size_t next = 0;
  for (const auto& input : inputs) result.push_back(input.requires_grad() ? found[next++] : at::Tensor());
  return result;
}

// |a - b| <= tolerance * max |b|; a gradient that is all 0 may be absent.
inline void expect_near(const at::Tensor& a, const at::Tensor& b, double tolerance, const std::string& what) {
  if (!a.defined() || !b.defined()) {
    const at::Tensor& other = a.defined() ? a : b;
    EXPECT_TRUE(!other.defined() || testing::largest(other) == 0) << what << ": only one of them is there";
    return;
  }
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_LE(testing::largest_difference(a, b), tolerance * testing::largest(b)) << what;
}

// The same numbers, lying in memory as the transpose of something wider.
inline at::Tensor strided(const at::Tensor& tensor) {
  std::vector<int64_t> sizes(tensor.sizes().rbegin(), tensor.sizes().rend());
  if (sizes.empty()) return tensor;
  sizes.back() += 3;
  at::Tensor wide = at::empty(sizes, tensor.options());
  std::vector<int64_t> back;
  for (int64_t i = tensor.dim() - 1; i >= 0; --i) back.push_back(i);
  at::Tensor view = wide.narrow(-1, 1, tensor.size(0)).permute(back);
  view.copy_(tensor.detach());
  return view.set_requires_grad(tensor.requires_grad());
}

// One argument made wrong in one way; undefined: this way does not apply.
inline at::Tensor spoiled(const at::Tensor& input, int way) {
  if (input.numel() == 0) return {};
  const bool sized = input.dim() > 0 && input.numel() > 0;
  switch (way) {
    case 0:
      return input.unsqueeze(0);
    case 1:
      return sized ? input.select(0, 0) : at::Tensor();
    case 2:
      return sized ? at::cat({input, input.narrow(-1, 0, 1)}, -1) : at::Tensor();
    case 3:
      return sized ? at::cat({input, input.narrow(0, 0, 1)}, 0) : at::Tensor();
    case 4:
      return sized ? input.narrow(-1, 0, input.size(-1) - 1) : at::Tensor();
    case 5:
      return input.is_floating_point() ? input.to(at::kDouble) : input.to(at::kFloat);
    case 6:
      return input.to(at::kMeta);
    case 7:
      return input.is_floating_point() ? at::Tensor() : input + 1000;
    case 8:
      return input.is_floating_point() ? at::Tensor() : input - 1000;
    default:
      return {};
  }
}

}  // namespace siamese::ops

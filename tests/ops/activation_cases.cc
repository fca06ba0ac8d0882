#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include <ATen/ATen.h>

#include "siamese/ops/activation.h"

namespace siamese::ops {

std::vector<OpCase> activation_cases() {
  using testing::randn;
  std::vector<OpCase> cases;
  for (const Activation kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    const auto call = [kind](const Tensors& t) { return Tensors{activation(kind, t[0])}; };
    const auto plain = [kind](const Tensors& t) { return Tensors{plain::activation(kind, t[0])}; };
    const std::string name(enum_text(kind));
    cases.push_back({"activation", name, {randn({3, 5, 34}, 1) * 2}, call, plain});
    cases.push_back({"activation", name + " of no rows", {randn({0, 34}, 1)}, call, plain});
  }
  for (const at::Tensor& x : {randn({3, 37}, 1) * 2, randn({0, 3}, 1), randn({}, 1)}) {
    cases.push_back({"silu",
                     std::to_string(x.numel()) + " elements",
                     {x},
                     [](const Tensors& t) { return Tensors{ops::silu(t[0])}; },
                     [](const Tensors& t) { return Tensors{at::silu(t[0])}; }});
    cases.push_back({"sigmoid",
                     std::to_string(x.numel()) + " elements",
                     {x},
                     [](const Tensors& t) { return Tensors{ops::sigmoid(t[0])}; },
                     [](const Tensors& t) { return Tensors{at::sigmoid(t[0])}; }});
  }
  return cases;
}

}  // namespace siamese::ops

#include "siamese/nn/feed_forward.h"

#include "tests/support/tensors.h"

namespace siamese::nn {
namespace {

at::Tensor weight(const Parameters& parameters, const std::string& name) {
  return parameters.find(name)->value.detach();
}

TEST(FeedForward, EqualsItsFormula) {
  const at::Tensor x = testing::randn({2, 3, 6}, 1);
  const Initializer init({.std = 0.5}, 6, 1);
  for (const auto kind : {FeedForwardKind::swiglu, FeedForwardKind::gelu, FeedForwardKind::gelu_tanh}) {
    Parameters parameters(3, at::kDouble);
    const FeedForward ffn(Scope(parameters), {kind, 6, 8, true}, init, 0, {});
    const at::Tensor u = x.matmul(weight(parameters, "in.weight").t()) + weight(parameters, "in.bias");
    at::Tensor hidden;
    if (kind == FeedForwardKind::swiglu) {
      const at::Tensor up = u.slice(-1, 0, 8);
      const at::Tensor gate = u.slice(-1, 8, 16);
      hidden = gate / (1 + (-gate).exp()) * up;
    } else if (kind == FeedForwardKind::gelu) {
      hidden = u * 0.5 * (1 + (u / std::sqrt(2.0)).erf());
    } else {
      hidden = 0.5 * u * (1 + (std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)).tanh());
    }
    const at::Tensor expected = hidden.matmul(weight(parameters, "out.weight").t()) + weight(parameters, "out.bias");
    testing::expect_relative(ffn(x), expected, 1e-12, std::string(enum_text(kind)));
  }
}

}  // namespace
}  // namespace siamese::nn

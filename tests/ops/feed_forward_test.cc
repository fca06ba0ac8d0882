#include "siamese/ops/feed_forward.h"

#include "tests/support/tensors.h"

#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace feed_forward_test {

using testing::leaf;
using testing::randn;

std::vector<at::Tensor> inputs(Activation kind, int64_t width, int64_t hidden, bool bias) {
  const int64_t in = kind == Activation::swiglu ? 2 * hidden : hidden;
  std::vector<at::Tensor> list = {randn({2, 5, width}, 1), randn({in, width}, 2) / std::sqrt(double(width)),
                                  randn({width, hidden}, 3) / std::sqrt(double(hidden))};
  if (bias) {
    list.push_back(randn({in}, 4));
    list.push_back(randn({width}, 5));
  }
  for (auto& tensor : list) tensor = tensor.to(at::kFloat);
  return list;
}

FeedForwardWeights weights_of(const std::vector<at::Tensor>& list) {
  const bool bias = list.size() > 3;
  return {list[1], bias ? list[3] : at::Tensor(), list[2], bias ? list[4] : at::Tensor()};
}

TEST(FeedForward, FusedEqualsPlainForwardAndGradient) {
  const ModeGuard fused(Mode::fused);
  for (const auto kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    for (const int64_t width : {1, 31, 33}) {
      for (const int64_t hidden : {1, 32, 257}) {
        for (const bool bias : {false, true}) {
          const auto list = inputs(kind, width, hidden, bias);
          std::vector<at::Tensor> exact;
          std::vector<at::Tensor> single;
          for (const auto& tensor : list) {
            exact.push_back(leaf(tensor.to(at::kDouble)));
            single.push_back(leaf(tensor));
          }
          const at::Tensor wanted = plain::feed_forward(kind, exact[0], weights_of(exact));
          const at::Tensor got = feed_forward(kind, single[0], weights_of(single));
          const std::string what = std::to_string(static_cast<int>(kind)) + " " + std::to_string(width) + " " +
                                   std::to_string(hidden) + (bias ? " bias" : "");
          // A row of one number may be what is left of terms that cancel: no larger one beside it.
          const double terms =
              width == 1 ? testing::largest(plain::activation(kind, at::linear(exact[0], exact[1])) * exact[2]) : 0;
          testing::expect_relative(got, wanted, 2e-6, what, terms);
          const auto wanted_gradients = testing::gradients(wanted, exact);
          const auto got_gradients = testing::gradients(got, single);
          for (size_t i = 0; i < exact.size(); ++i) {
            testing::expect_relative(got_gradients[i], wanted_gradients[i], 4e-6, what + " " + std::to_string(i));
          }
        }
      }
    }
  }
}

TEST(FeedForward, AddsToGradientsThatAreThere) {
  const ModeGuard fused(Mode::fused);
  std::vector<at::Tensor> list;
  for (const auto& tensor : inputs(Activation::swiglu, 7, 9, true)) list.push_back(leaf(tensor));
  const auto fresh = torch::autograd::grad({feed_forward(Activation::swiglu, list[0], weights_of(list)).sum()}, list);
  for (const auto& tensor : list) tensor.mutable_grad() = at::ones_like(tensor.detach());
  const GradientsInPlace in_place;
  feed_forward(Activation::swiglu, list[0], weights_of(list)).sum().backward();
  for (size_t i = 0; i < list.size(); ++i) {
    testing::expect_relative(list[i].grad(), fresh[i] + 1, 1e-6, std::to_string(i));
  }
}

}  // namespace feed_forward_test
}  // namespace siamese::ops

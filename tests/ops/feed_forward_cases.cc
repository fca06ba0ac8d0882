#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/feed_forward.h"

namespace siamese::ops {

std::vector<OpCase> feed_forward_cases() {
  using testing::randn;
  std::vector<OpCase> cases;
  for (const Activation kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    const int64_t hidden = 19, inner = kind == Activation::swiglu ? 2 * hidden : hidden;
    const std::string name(enum_text(kind));
    const at::Tensor w_in = randn({inner, 33}, 2) / 6, w_out = randn({33, hidden}, 3) / 4;
    const auto add = [&](const std::string& what, const Tensors& inputs, auto weights) {
      cases.push_back({"feed_forward", name + what, inputs,
                       [=](const Tensors& t) { return Tensors{feed_forward(kind, t[0], weights(t))}; },
                       [=](const Tensors& t) { return Tensors{plain::feed_forward(kind, t[0], weights(t))}; }});
    };
    const auto bare = [](const Tensors& t) { return FeedForwardWeights{t[1], {}, t[2], {}}; };
    add("", {randn({3, 5, 33}, 1), w_in, w_out}, bare);
    add(" of no rows", {randn({3, 0, 33}, 1), w_in, w_out}, bare);
    add(" with biases", {randn({5, 33}, 1), w_in, w_out, randn({inner}, 4), randn({33}, 5)}, [](const Tensors& t) {
      return FeedForwardWeights{t[1], t[3], t[2], t[4]};
    });
    add(" with one bias", {randn({5, 33}, 1), w_in, w_out, randn({33}, 5)}, [](const Tensors& t) {
      return FeedForwardWeights{t[1], {}, t[2], t[3]};
    });
  }
  return cases;
}

}  // namespace siamese::ops

#include "siamese/ops/activation.h"

#include "tests/support/tensors.h"

#include "siamese/base/check.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace activation_test {

using testing::leaf;
using testing::randn;

TEST(Activation, FusedEqualsPlainForwardAndGradient) {
  const ModeGuard fused(Mode::fused);
  for (const auto kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    for (const int64_t cols : {1, 31, 32, 33, 257}) {
      const int64_t width = kind == Activation::swiglu ? 2 * cols : cols;
      const at::Tensor exact = leaf((randn({3, 5, width}, 1) * 2).to(at::kFloat).to(at::kDouble));
      const at::Tensor single = leaf(exact.to(at::kFloat));
      const at::Tensor got = activation(kind, single);
      const at::Tensor wanted = plain::activation(kind, exact);
      const std::string what = std::to_string(static_cast<int>(kind)) + " cols " + std::to_string(cols);
      testing::expect_relative(got, wanted, 1e-6, what);
      testing::expect_relative(testing::gradients(got, {single})[0], testing::gradients(wanted, {exact})[0], 1e-6,
                               what);
    }
  }
}

TEST(Activation, KindsAreWordsInSchemas) {
  for (const auto kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    EXPECT_EQ(activation_named("x", enum_text(kind)), kind);
  }
  try {
    activation_named("activation", "relu");
    ADD_FAILURE() << "relu was taken";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "siamese::activation: kind: expected swiglu | gelu | gelu_tanh, got relu");
  }
}

}  // namespace activation_test
}  // namespace siamese::ops

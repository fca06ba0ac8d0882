#include "siamese/ops/cross_entropy.h"

#include "tests/support/tensors.h"

namespace siamese::ops {
namespace {

using testing::leaf;
using testing::randn;

TEST(CrossEntropy, EqualsTheDefinitionForwardAndGradient) {
  const at::Tensor logits = leaf(randn({6, 33}, 1) * 3);
  const at::Tensor targets = at::tensor({0, 32, 5, 7, 31, 1}, at::kLong);
  const at::Tensor weights = at::tensor({1.0, 0.0, 1.0, 1.0, 0.5, 1.0}, at::kDouble);
  const CrossEntropy terms = cross_entropy(logits, targets, weights);

  const at::Tensor probabilities = logits.exp() / logits.exp().sum(-1, true);
  const at::Tensor picked = probabilities.gather(1, targets.unsqueeze(1)).squeeze(1);
  const at::Tensor normalizer = logits.exp().sum(-1).log();
  const at::Tensor nll = -(picked.log() * weights).sum();
  const at::Tensor z = (normalizer * normalizer * weights).sum();
  EXPECT_NEAR(terms.nll.item<double>(), nll.item<double>(), 1e-12 * std::abs(nll.item<double>()));
  EXPECT_NEAR(terms.z.item<double>(), z.item<double>(), 1e-12 * std::abs(z.item<double>()));
  testing::expect_close(torch::autograd::grad({terms.nll}, {logits}, {}, true)[0],
                        torch::autograd::grad({nll}, {logits}, {}, true)[0], 1e-12, "nll gradient");
  testing::expect_close(torch::autograd::grad({terms.z}, {logits}, {}, true)[0],
                        torch::autograd::grad({z}, {logits}, {}, true)[0], 1e-12, "z gradient");
}

TEST(CrossEntropy, LargeLogitsStayFinite) {
  const at::Tensor logits = leaf(at::tensor({1e4f, -1e4f, -1e4f, 1e4f}).view({2, 2}));
  const CrossEntropy terms = cross_entropy(logits, at::tensor({0, 0}, at::kLong), {});
  EXPECT_EQ(terms.nll.item<float>(), 2e4f);
}

}  // namespace
}  // namespace siamese::ops

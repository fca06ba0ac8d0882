#include "siamese/ops/cross_entropy.h"

#include "tests/support/tensors.h"

#include "siamese/base/check.h"

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
  testing::expect_relative(torch::autograd::grad({terms.nll}, {logits}, {}, true)[0],
                           torch::autograd::grad({nll}, {logits}, {}, true)[0], 1e-12, "nll gradient");
  testing::expect_relative(torch::autograd::grad({terms.z}, {logits}, {}, true)[0],
                           torch::autograd::grad({z}, {logits}, {}, true)[0], 1e-12, "z gradient");
}

TEST(CrossEntropy, LargeLogitsStayFinite) {
  const at::Tensor logits = leaf(at::tensor({1e4f, -1e4f, -1e4f, 1e4f}).view({2, 2}));
  const CrossEntropy terms = cross_entropy(logits, at::tensor({0, 0}, at::kLong), {});
  EXPECT_EQ(terms.nll.item<float>(), 2e4f);
}

TEST(CrossEntropy, OfHalfTypesTheSumsAreFloat) {
  const at::Tensor logits = leaf((randn({40, 33}, 1) * 3).to(at::kBFloat16));
  const at::Tensor exact = leaf(logits.detach().to(at::kDouble));
  const at::Tensor targets = at::arange(40, at::kLong) % 33;
  const CrossEntropy got = cross_entropy(logits, targets, {});
  const CrossEntropy wanted = cross_entropy(exact, targets, {});
  EXPECT_EQ(got.nll.scalar_type(), at::kFloat);
  testing::expect_relative(got.nll, wanted.nll, 1e-6, "nll");
  testing::expect_relative(got.z, wanted.z, 1e-6, "z");
  testing::expect_relative(torch::autograd::grad({got.nll + got.z}, {logits})[0],
                           torch::autograd::grad({wanted.nll + wanted.z}, {exact})[0], 5e-3, "gradient");
}

TEST(CrossEntropy, RowsWantDenseLogitsAndTargetsInRange) {
  const LossScales scales;
  const at::Tensor targets = at::tensor({0, 2}, at::kLong);
  const at::Tensor losses = at::empty({2, 2});
  EXPECT_NO_THROW(cross_entropy_rows(at::zeros({2, 3}), targets, {}, losses, &scales));
  EXPECT_THROW(cross_entropy_rows(at::zeros({3, 2}).t(), targets, {}, losses, &scales), UsageError);
  EXPECT_THROW(cross_entropy_rows(at::zeros({2, 3}, at::kDouble), targets, {}, losses, &scales), UsageError);
  EXPECT_THROW(cross_entropy_rows(at::zeros({2, 3}), targets + 1, {}, losses, &scales), UsageError);
  EXPECT_THROW(cross_entropy_rows(at::zeros({2, 3}), targets, {}, at::empty({2, 2}).t(), &scales), UsageError);
}

}  // namespace
}  // namespace siamese::ops

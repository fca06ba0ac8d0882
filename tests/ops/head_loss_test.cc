#include "siamese/ops/head_loss.h"

#include "tests/support/tensors.h"

#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace head_loss_test {

using testing::leaf;
using testing::randn;

at::Tensor targets(int64_t rows, int64_t vocab) { return at::arange(rows, at::kLong) * 7919 % vocab; }

// The last shape does not fit into one chunk.
const std::vector<std::array<int64_t, 3>> kShapes = {{1, 3, 1}, {5, 31, 33}, {9, 32, 257}, {200, 5, 70001}};

TEST(HeadLoss, FusedEqualsPlainForwardAndGradient) {
  const ModeGuard fused_where_it_can(Mode::automatic);
  for (const auto& [rows, width, vocab] : kShapes) {
    for (const bool weighted : {false, true}) {
      const at::Tensor hidden = randn({rows, width}, 1, at::kFloat);
      const at::Tensor head = randn({vocab, width}, 2, at::kFloat);
      const at::Tensor weights = weighted ? (at::arange(rows) % 3).to(at::kFloat) : at::Tensor();
      const std::vector<at::Tensor> exact = {leaf(hidden.to(at::kDouble)), leaf(head.to(at::kDouble))};
      const std::vector<at::Tensor> single = {leaf(hidden), leaf(head)};
      const HeadLossScales scales{0.3, 0.01};
      const HeadLoss wanted = plain::head_loss(exact[0], exact[1], targets(rows, vocab),
                                               weighted ? weights.to(at::kDouble) : weights, scales);
      const HeadLoss got = head_loss(single[0], single[1], targets(rows, vocab), weights, scales);
      const std::string what = std::to_string(rows) + "x" + std::to_string(width) + "x" + std::to_string(vocab);
      testing::expect_close(got.objective, wanted.objective, 2e-6, what + " objective");
      testing::expect_close(got.nll, wanted.nll, 2e-6, what + " nll");
      testing::expect_close(got.z, wanted.z, 2e-6, what + " z");
      // A factor behind the loss reaches the gradients made before it was known.
      const auto got_gradients = torch::autograd::grad({got.objective * 3}, single);
      const auto wanted_gradients = torch::autograd::grad({wanted.objective * 3}, exact);
      for (size_t i = 0; i < 2; ++i) {
        testing::expect_close(got_gradients[i], wanted_gradients[i], 3e-6, what + " gradient " + std::to_string(i));
      }
    }
  }
}

TEST(HeadLoss, AddsToAGradientThatIsThere) {
  const ModeGuard fused(Mode::fused);
  const at::Tensor hidden = leaf(randn({6, 5}, 1, at::kFloat));
  const at::Tensor head = leaf(randn({11, 5}, 2, at::kFloat));
  const auto fresh = torch::autograd::grad({head_loss(hidden, head, targets(6, 11), {}, {}).objective}, {hidden, head});
  head.mutable_grad() = at::ones({11, 5});
  const GradientsInPlace in_place;
  head_loss(hidden, head, targets(6, 11), {}, {}).objective.backward();
  testing::expect_close(head.grad(), fresh[1] + 1, 1e-6, "head");
  testing::expect_close(hidden.grad(), fresh[0], 1e-6, "hidden");
}

TEST(HeadLoss, WithoutGradientsTheSameLoss) {
  const ModeGuard fused(Mode::fused);
  const at::Tensor hidden = randn({6, 5}, 1, at::kFloat);
  const at::Tensor head = leaf(randn({11, 5}, 2, at::kFloat));
  const HeadLoss with = head_loss(hidden, head, targets(6, 11), {}, {});
  const at::NoGradGuard no_grad;
  const HeadLoss without = head_loss(hidden, head, targets(6, 11), {}, {});
  testing::expect_same_bits(with.objective.detach(), without.objective, "objective");
  EXPECT_FALSE(without.objective.requires_grad());
}

}  // namespace head_loss_test
}  // namespace siamese::ops

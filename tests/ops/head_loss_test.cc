#include "siamese/ops/head_loss.h"

#include "tests/support/tensors.h"

#include "siamese/base/check.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace head_loss_test {

using testing::leaf;
using testing::randn;

at::Tensor targets(int64_t rows, int64_t vocab) { return at::arange(rows, at::kLong) * 7919 % vocab; }

// The last shape does not fit into one chunk.
const std::vector<std::array<int64_t, 3>> kShapes = {{1, 3, 1}, {5, 31, 33}, {9, 32, 257}, {520, 5, 33001}};

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
      testing::expect_relative(got.objective, wanted.objective, 2e-6, what + " objective");
      testing::expect_relative(got.nll, wanted.nll, 2e-6, what + " nll");
      testing::expect_relative(got.z, wanted.z, 2e-6, what + " z");
      // A factor behind the loss reaches the gradients made before it was known.
      const auto got_gradients = torch::autograd::grad({got.objective * 3}, single);
      const auto wanted_gradients = torch::autograd::grad({wanted.objective * 3}, exact);
      for (size_t i = 0; i < 2; ++i) {
        // The nll of one class is 0: so is p - 1, the factor of the other tensor.
        const double terms = vocab == 1 ? 3 * scales.nll * testing::largest(exact[1 - i]) : 0;
        testing::expect_relative(got_gradients[i], wanted_gradients[i], 3e-6, what + " gradient " + std::to_string(i),
                                 terms);
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
  testing::expect_relative(head.grad(), fresh[1] + 1, 1e-6, "head");
  testing::expect_relative(hidden.grad(), fresh[0], 1e-6, "hidden");
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

// A gradient other than 1 comes too late for what is in .grad already.
TEST(HeadLoss, InPlaceOnlyAnObjectiveThatIsTheRootHasAGradient) {
  const at::Tensor hidden = leaf(randn({6, 5}, 1, at::kFloat));
  const at::Tensor head = leaf(randn({11, 5}, 2, at::kFloat));
  head.mutable_grad() = at::zeros({11, 5});
  const GradientsInPlace in_place;
  const at::Tensor objective = head_loss(hidden, head, targets(6, 11), {}, {}).objective;
  try {
    (objective * 2).backward();
    FAIL() << "a gradient of 2 was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "siamese::head_loss: gradient of the objective: expected 1 inside GradientsInPlace, got 2");
  }
}

// The gradient of the head is rewritten once a chunk: under 5 % of the chunk's products from 256 rows on
// (head_loss.cc).
TEST(HeadLoss, ChunksAreLongEnoughForTheirGradientAndFitIntoMemory) {
  for (const int64_t bytes : {2, 4}) {
    for (const int64_t vocab : {1, 33, 8192, 32000, 50257, 128256, 262144}) {
      for (const int64_t rows : {1, 255, 256, 257, 500, 1023, 1024, 4096, 100000}) {
        const int64_t chunk = head_loss_chunk(rows, vocab, bytes);
        EXPECT_GE(chunk, std::min(rows, 1024 / bytes)) << rows << " " << vocab;
        EXPECT_LE(chunk, rows);
        EXPECT_LE(chunk * vocab * bytes, std::max<int64_t>(1 << 25, 2 * 1024 * vocab)) << rows << " " << vocab;
      }
    }
  }
}

TEST(HeadLoss, AWrongTargetLeavesTheGradientAlone) {
  const at::Tensor hidden = leaf(randn({520, 5}, 1, at::kFloat));
  const at::Tensor head = leaf(randn({33001, 5}, 2, at::kFloat));  // more than one chunk
  head.mutable_grad() = at::zeros({33001, 5});
  at::Tensor wrong = targets(520, 33001);
  wrong[519] = 33001;
  const GradientsInPlace in_place;
  EXPECT_THROW(head_loss(hidden, head, wrong, {}, {}), UsageError);
  EXPECT_EQ(testing::largest(head.grad()), 0);
}

TEST(HeadLoss, OfHalfTypesTheLossIsFloat) {
  const at::Tensor hidden = leaf(randn({40, 8}, 1).to(at::kBFloat16));
  const at::Tensor head = leaf(randn({33, 8}, 2).to(at::kBFloat16));
  const HeadLoss got = head_loss(hidden, head, targets(40, 33), {}, {0.1, 0.01});
  const std::vector<at::Tensor> exact = {leaf(hidden.detach().to(at::kDouble)), leaf(head.detach().to(at::kDouble))};
  const HeadLoss wanted = head_loss(exact[0], exact[1], targets(40, 33), {}, {0.1, 0.01});
  EXPECT_EQ(got.nll.scalar_type(), at::kFloat);
  testing::expect_relative(got.nll, wanted.nll, 2e-3, "nll");  // of logits that were rounded
  const auto got_gradients = torch::autograd::grad({got.objective}, {hidden, head});
  const auto wanted_gradients = torch::autograd::grad({wanted.objective}, exact);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got_gradients[i].scalar_type(), at::kBFloat16);
    testing::expect_relative(got_gradients[i], wanted_gradients[i], 1e-2, std::to_string(i));
  }
}

}  // namespace head_loss_test
}  // namespace siamese::ops

#include "siamese/kernels/cross_entropy.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/cross_entropy.h"

namespace siamese::kernels {
namespace cross_entropy_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(CrossEntropyKernel);

constexpr int64_t kCrossEntropyRows = 3;

struct Results {
  std::vector<float> logits;
  std::vector<float> nll = std::vector<float>(kCrossEntropyRows);
  std::vector<float> z = std::vector<float>(kCrossEntropyRows);
};

Results run(const std::vector<float>& logits, const std::vector<int64_t>& targets, const std::vector<float>& weights,
            int64_t vocab, bool gradient, double nll_scale = 1, double z_scale = 0) {
  Results results{.logits = logits};
  const CrossEntropyRows rows{results.logits.data(), targets.data(),   weights.data(),
                              results.nll.data(),    results.z.data(), vocab};
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, kCrossEntropyRows}}) {
    if (gradient) {
      cross_entropy_with_gradient(rows, nll_scale, z_scale, begin, end);
    } else {
      cross_entropy(rows, begin, end);
    }
  }
  return results;
}

TEST_P(CrossEntropyKernel, EqualsTheReference) {
  const std::vector<float> weights = {1, 0, 0.5F};
  for (const int64_t vocab : {1, 2, 31, 32, 33, 257, 5000}) {
    auto logits = random_floats(kCrossEntropyRows * vocab, "logits", 0, 3);
    for (size_t i = 0; i < logits.size(); i += 11) logits[i] -= 120;  // probabilities that vanish
    const std::vector<int64_t> targets = {0, vocab / 2, vocab - 1};
    const Results losses = run(logits, targets, weights, vocab, false);
    const Results both = run(logits, targets, weights, vocab, true, 0.3, 0.01);
    EXPECT_EQ(losses.logits, logits);
    EXPECT_EQ(losses.nll, both.nll);
    EXPECT_EQ(losses.z, both.z);
    for (int64_t row = 0; row < kCrossEntropyRows; ++row) {
      const auto at = static_cast<size_t>(row);
      const auto want =
          reference::cross_entropy_row(logits.data() + row * vocab, vocab, targets[at], weights[at], 0.3, 0.01);
      EXPECT_NEAR(both.nll[at], want.nll, 2e-6 * (1 + std::abs(want.nll))) << vocab;
      EXPECT_NEAR(both.z[at], want.z, 4e-6 * (1 + want.z)) << vocab;
      for (int64_t i = 0; i < vocab; ++i) {
        EXPECT_NEAR(both.logits[static_cast<size_t>(row * vocab + i)], want.gradient[static_cast<size_t>(i)], 1e-6)
            << vocab << " " << row << " " << i;
      }
    }
  }
}

// The largest logit is 0, so that every difference to it is exact and what is seen are the exponentials, their sum and
// the last product: a few roundings of each probability, however small it is, and some more without fused additions.
TEST_P(CrossEntropyKernel, SmallProbabilitiesAreExactToo) {
  for (const int64_t vocab : {2, 3, 15, 17, 31, 33, 257, 1000}) {
    auto logits = random_floats(kCrossEntropyRows * vocab, "logits");
    for (size_t i = 0; i < logits.size(); ++i) {
      const float far = std::abs(logits[i]) * static_cast<float>(i % 29);
      logits[i] = i % static_cast<size_t>(vocab) == 0 ? 0.0F : std::max(-80.0F, -far);
    }
    const Results made = run(logits, {0, 0, 0}, {1, 1, 1}, vocab, true);
    for (int64_t row = 0; row < kCrossEntropyRows; ++row) {
      const auto want = reference::cross_entropy_row(logits.data() + row * vocab, vocab, 0, 1, 1, 0);
      for (int64_t i = 1; i < vocab; ++i) {
        const double expected = want.gradient[static_cast<size_t>(i)];
        EXPECT_NEAR(made.logits[static_cast<size_t>(row * vocab + i)], expected, 8 * kUlp * expected)
            << vocab << " " << i;
      }
    }
  }
}

TEST_P(CrossEntropyKernel, NoNumberStaysHidden) {
  constexpr int64_t kVocab = 37;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int64_t place : {0, 20, 36}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity}) {
      auto logits = random_floats(kCrossEntropyRows * kVocab, "logits");
      logits[static_cast<size_t>(kVocab + place)] = bad;
      const Results results = run(logits, {1, 1, 1}, {1, 1, 1}, kVocab, true);
      EXPECT_TRUE(std::isfinite(results.nll[0]) && std::isfinite(results.nll[2]));
      EXPECT_FALSE(std::isfinite(results.nll[1])) << place << " " << bad;
    }
    auto logits = random_floats(kCrossEntropyRows * kVocab, "logits");
    logits[static_cast<size_t>(kVocab + place)] = -infinity;  // a forbidden token: probability zero
    const Results results = run(logits, {1, 1, 1}, {1, 1, 1}, kVocab, true);
    EXPECT_TRUE(std::isfinite(results.nll[1]));
    EXPECT_EQ(results.logits[static_cast<size_t>(kVocab + place)], 0);
  }
}

}  // namespace cross_entropy_test
}  // namespace siamese::kernels

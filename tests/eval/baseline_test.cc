// The baseline of each family against its formula, written out.
#include "siamese/eval/baseline.h"

#include <cmath>

#include "tests/eval/small_images.h"

#include "siamese/eval/held_out.h"
#include "siamese/eval/inputs.h"

namespace siamese::eval {
namespace baseline_test {

data::Batch text_batch(std::vector<int64_t> tokens, std::vector<float> weights, int64_t rows) {
  data::Batch batch;
  batch.rows = rows;
  batch.shape = {.context = static_cast<int64_t>(weights.size()) / rows, .vocab = 10};
  batch.tokens = std::move(tokens);
  batch.weights = std::move(weights);
  return batch;
}

TEST(Baseline, OfTextIsTheEntropyOfTheCountedTargets) {
  Baseline baseline({.family = models::Family::lm});
  EXPECT_TRUE(std::isnan(baseline.loss()));
  // Rows of 3 + 1 tokens; targets are tokens 1 to 3. Counted: 5, 5, 7 and 7, 5, 9; left out: 8, 8, 8.
  baseline.add(text_batch({1, 5, 5, 7, 2, 7, 5, 9}, {1, 1, 1, 1, 1, 1}, 2));
  baseline.add(text_batch({0, 8, 8, 8}, {0, 0, 0}, 1));
  const double expected = -(3.0 / 6 * std::log(3.0 / 6) + 2.0 / 6 * std::log(2.0 / 6) + 1.0 / 6 * std::log(1.0 / 6));
  EXPECT_NEAR(baseline.loss(), expected, 1e-15);
  // No one distribution for all targets does better on them: the entropy is the least cross-entropy.
  for (double p : {0.1, 0.4, 0.5, 0.6}) {
    const double rest = (1 - p) / 2;
    EXPECT_GE(-(3 * std::log(p) + 2 * std::log(rest) + std::log(rest)) / 6, expected);
  }
}

TEST(Baseline, OfAClassifierIsTheEntropyOfTheLabels) {
  const SmallVit vit(4);
  const RandomPictures pictures(vit.config, 50);
  std::vector<double> counts(4, 0);
  for (uint64_t i = 0; i < 50; ++i) counts[static_cast<size_t>(pictures.label(i))] += 1;
  double entropy = 0;
  std::vector<float> prior;
  for (const double count : counts) {
    entropy -= count / 50 * std::log(count / 50);
    prior.push_back(static_cast<float>(std::log(count / 50)));
  }
  EXPECT_NEAR(baseline_loss(vit.config, pictures, 7, 1000), entropy, 1e-14);
  // It is the loss of a model that always answers with the share of each class.
  vit.always(prior);
  EXPECT_NEAR(held_out_loss(*vit.owner, pictures, 7, 50).loss, entropy, 1e-5);
}

// A fresh DiT gives 0 for everything: its last projection starts at 0.
TEST(Baseline, OfADiffusionModelIsTheLossOfAnOutputOfZero) {
  for (const bool learn_sigma : {true, false}) {
    models::ModelConfig config = models::small_family(models::Family::dit, "pre");
    config.learn_sigma = learn_sigma;
    const auto fresh = models::make_small(config);
    const RandomPictures pictures(config, 7);
    Baseline baseline(config);
    const HeldOut held_out = held_out_loss(*fresh, pictures, 3, 7, &baseline);
    EXPECT_NEAR(baseline.loss(), held_out.loss, 1e-6 * held_out.loss);
    EXPECT_NEAR(baseline_loss(config, pictures, 4, 7), held_out.loss, 1e-6 * held_out.loss);
    // The noise has a variance of 1.
    EXPECT_NEAR(held_out.terms[0].second, 1, 0.2);
  }
}

}  // namespace baseline_test
}  // namespace siamese::eval

#include "siamese/data/mix.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace siamese::data {
namespace {

namespace mix_test {

// Row r is r + 1 everywhere; its label is r.
Batch rows_batch(int64_t rows, int64_t size = 8) {
  Batch batch;
  batch.rows = rows;
  batch.shape = {.image = size, .channels = 2, .classes = rows + 1};
  for (int64_t r = 0; r < rows; ++r) {
    batch.labels.push_back(r);
    batch.images.insert(batch.images.end(), static_cast<size_t>(batch.shape.pixels()), static_cast<float>(r + 1));
  }
  return batch;
}

float target(const Batch& batch, int64_t row, int64_t label) {
  return batch.targets[static_cast<size_t>(row * batch.shape.classes + label)];
}

void expect_rows_add_up(const Batch& batch) {
  ASSERT_EQ(std::ssize(batch.targets), batch.rows * batch.shape.classes);
  for (int64_t r = 0; r < batch.rows; ++r) {
    double sum = 0;
    for (int64_t k = 0; k < batch.shape.classes; ++k) sum += target(batch, r, k);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(Mix, BetaDrawsHaveTheirMoments) {
  for (const double shape : {0.2, 0.8, 1.0, 3.0}) {
    Draws draws(7, 0);
    double sum = 0;
    double squares = 0;
    constexpr int kCount = 20000;
    for (int i = 0; i < kCount; ++i) {
      const double value = beta_draw(shape, draws);
      ASSERT_TRUE(value >= 0 && value <= 1);
      sum += value;
      squares += (value - 0.5) * (value - 0.5);
    }
    EXPECT_NEAR(sum / kCount, 0.5, 0.015) << shape;
    EXPECT_NEAR(squares / kCount, 1 / (4 * (2 * shape + 1)), 0.006) << shape;  // variance of Beta(a, a)
  }
  Draws draws(7, 1);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(std::isfinite(beta_draw(1e-3, draws)));
}

TEST(Mix, NothingToDoLeavesNoTargets) {
  Batch batch = rows_batch(4);
  const Batch before = batch;
  Draws draws(1, 1);
  mix(batch, AugmentConfig{}, draws);
  EXPECT_TRUE(batch.targets.empty());
  EXPECT_EQ(batch.images, before.images);
}

TEST(Mix, SmoothingSpreadsItsShare) {
  Batch batch = rows_batch(3);
  Draws draws(1, 1);
  mix(batch, {.smoothing = 0.1}, draws);
  expect_rows_add_up(batch);
  EXPECT_FLOAT_EQ(target(batch, 1, 1), 0.9F + 0.025F);
  EXPECT_FLOAT_EQ(target(batch, 1, 2), 0.025F);
}

TEST(Mix, MixupIsItsEquation) {
  for (const int64_t rows : {1, 4, 5}) {
    Batch batch = rows_batch(rows);
    Draws draws(1, 4);
    mix(batch, {.mixup = 0.8}, draws);
    expect_rows_add_up(batch);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t other = rows - 1 - r;
      const float lambda = other == r ? 1 : target(batch, r, r);
      EXPECT_TRUE(lambda == 1 || (lambda > 0 && lambda < 1));
      if (other != r) {
        EXPECT_NEAR(target(batch, r, other), 1 - lambda, 1e-6);
      }
      const auto width = static_cast<size_t>(batch.shape.pixels());
      for (size_t i = 0; i < width; ++i) {
        ASSERT_NEAR(batch.images[static_cast<size_t>(r) * width + i],
                    lambda * static_cast<float>(r + 1) + (1 - lambda) * static_cast<float>(other + 1), 1e-5);
      }
    }
  }
}

TEST(Mix, CutmixSharesEqualTheRealArea) {
  int partial = 0;
  for (uint64_t stream = 0; stream < 60; ++stream) {
    Batch batch = rows_batch(4);
    Draws draws(1, stream);
    mix(batch, {.cutmix = 1, .smoothing = 0.1}, draws);
    expect_rows_add_up(batch);
    const auto width = static_cast<size_t>(batch.shape.pixels());
    for (int64_t r = 0; r < 4; ++r) {
      double own = 0;
      for (size_t i = 0; i < width; ++i) {
        const float value = batch.images[static_cast<size_t>(r) * width + i];
        ASSERT_TRUE(value == static_cast<float>(r + 1) || value == static_cast<float>(4 - r));
        own += value == static_cast<float>(r + 1) ? 1.0 / static_cast<double>(width) : 0;
      }
      EXPECT_NEAR(target(batch, r, r), 0.02 + 0.9 * own, 1e-6);
      partial += own > 0 && own < 1 ? 1 : 0;
    }
  }
  EXPECT_GT(partial, 100);
}

TEST(Mix, ProbabilitiesDecideWhetherAndWhich) {
  int mixed = 0;
  int cut = 0;
  for (uint64_t stream = 0; stream < 400; ++stream) {
    Batch batch = rows_batch(2);
    Draws draws(2, stream);
    mix(batch, {.mixup = 0.8, .cutmix = 1, .mix = 0.5, .switch_ = 0.25}, draws);
    expect_rows_add_up(batch);
    const bool whole =
        std::all_of(batch.images.begin(), batch.images.end(), [](float v) { return v == 1.0F || v == 2.0F; });
    const bool changed = target(batch, 0, 0) != 1;
    mixed += changed ? 1 : 0;
    cut += changed && whole ? 1 : 0;
  }
  EXPECT_NEAR(mixed, 200, 50);
  EXPECT_NEAR(cut, 50, 30);
}

}  // namespace mix_test
}  // namespace
}  // namespace siamese::data

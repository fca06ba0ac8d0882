#include "siamese/data/prefetch.h"

#include <algorithm>
#include <chrono>

#include "tests/data/support.h"
#include "tests/support/limited_child.h"
#include <gtest/gtest.h>

namespace siamese::data {
namespace {

constexpr int64_t kPrefetchContext = 33;

// Token i of sample p is p + i; sample `broken_at` cannot be made.
class Counting : public Dataset {
 public:
  explicit Counting(uint64_t broken_at = ~0ULL) : broken_at_(broken_at) {}
  int64_t vocab() const override { return 1 << 30; }
  int64_t samples() const override { return 0; }
  std::string describe() const override { return "counting"; }
  void sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const override {
    if (position == broken_at_) throw DataError("shard.bin: unreadable");
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(position + i);
    std::fill(weights.begin(), weights.end(), 0.5F);
  }

 private:
  uint64_t broken_at_;
};

std::unique_ptr<Batches> counting(uint64_t broken_at = ~0ULL) {
  return token_batches(std::make_unique<Counting>(broken_at), kPrefetchContext);
}

TEST(Prefetch, BatchesEqualDirectSamplingFromAnyStart) {
  const auto dataset = open_dataset(DataConfig{}, Split::train, kPrefetchContext, 16, 4);
  const auto source =
      token_batches(open_dataset(DataConfig{}, Split::train, kPrefetchContext, 16, 4), kPrefetchContext);
  for (const uint64_t start : {uint64_t{0}, uint64_t{5}, uint64_t{123456789}}) {
    for (const int depth : {1, 2, 5}) {
      constexpr int64_t kRows = 3;
      Prefetcher prefetcher(*source, kRows, start, depth);
      for (uint64_t k = 0; k < 8; ++k) {
        const Batch batch = prefetcher.next();
        ASSERT_EQ(batch.first_position, start + k * kRows);
        ASSERT_EQ(batch.rows, kRows);
        ASSERT_EQ(batch.shape.context, kPrefetchContext);
        ASSERT_EQ(std::ssize(batch.tokens), kRows * (kPrefetchContext + 1));
        ASSERT_EQ(std::ssize(batch.weights), kRows * kPrefetchContext);
        for (int64_t row = 0; row < kRows; ++row) {
          const Sample sample =
              sample_at(*dataset, batch.first_position + static_cast<uint64_t>(row), kPrefetchContext);
          ASSERT_TRUE(std::equal(sample.tokens.begin(), sample.tokens.end(),
                                 batch.tokens.begin() + row * (kPrefetchContext + 1)));
          ASSERT_TRUE(
              std::equal(sample.weights.begin(), sample.weights.end(), batch.weights.begin() + row * kPrefetchContext));
        }
      }
    }
  }
}

TEST(Prefetch, AResumedRunSeesTheSameBatches) {
  const auto source =
      token_batches(open_dataset(DataConfig{}, Split::train, kPrefetchContext, 16, 4), kPrefetchContext);
  Prefetcher whole(*source, 4, 0);
  for (int i = 0; i < 3; ++i) whole.next();
  Prefetcher resumed(*source, 4, 12);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(whole.next().tokens, resumed.next().tokens);
}

// A user with as many threads as allowed still trains: the batches are then made when they are asked for.
TEST(Prefetch, WithoutAThreadTheBatchesAreTheSame) {
  const auto source = counting(13);
  EXPECT_TRUE(holds_as_nobody([&] {
    allow_no_more_threads();
    Prefetcher prefetcher(*source, 4, 1);
    for (const int64_t first : {1, 5, 9}) {
      if (prefetcher.next().tokens.front() != first) return false;
    }
    try {
      prefetcher.next();
    } catch (const DataError&) {
      return true;
    }
    return false;
  }));
}

TEST(Prefetch, AFailureIsThrownAfterTheBatchesBeforeIt) {
  const auto source = counting(7);
  Prefetcher prefetcher(*source, 2, 1);
  EXPECT_EQ(prefetcher.next().tokens[0], 1);
  EXPECT_EQ(prefetcher.next().tokens[0], 3);
  EXPECT_EQ(prefetcher.next().tokens[0], 5);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(error_of<DataError>([&] { prefetcher.next(); }), "shard.bin: unreadable");
  }
}

TEST(Prefetch, ShutsDownAtAnyMoment) {
  const auto source = counting();
  for (int taken = 0; taken < 50; ++taken) {
    Prefetcher prefetcher(*source, 2, 0, 1 + taken % 3);
    for (int i = 0; i < taken % 4; ++i) prefetcher.next();
  }
  const auto broken = counting(0);
  const Prefetcher unused(*broken, 2, 0);
}

}  // namespace
}  // namespace siamese::data

// Samples evenly spread over a set.
#include "siamese/data/spread.h"

#include <gtest/gtest.h>

namespace siamese::data {
namespace {

// Sample i is the window {10 i, 10 i + 1, 10 i + 2} with label i.
class Numbered : public Batches {
 public:
  explicit Numbered(int64_t count) : count_(count) {}
  int64_t samples() const override { return count_; }
  std::string describe() const override { return "numbered"; }
  Batch batch(uint64_t first, int64_t rows) const override {
    Batch batch;
    batch.rows = rows;
    batch.shape = {.context = 2, .vocab = 100};
    batch.first_position = first;
    for (int64_t i = static_cast<int64_t>(first); i < static_cast<int64_t>(first) + rows; ++i) {
      for (int64_t at = 0; at < 3; ++at) batch.tokens.push_back(10 * i + at);
      batch.weights.insert(batch.weights.end(), {1, static_cast<float>(i)});
      batch.labels.push_back(i);
    }
    return batch;
  }

 private:
  int64_t count_;
};

using Labels = std::vector<int64_t>;

TEST(Spread, EvenlyFromTheFirstOn) {
  const Numbered ten(10);
  const SpreadBatches four(ten, 4);
  EXPECT_EQ(four.samples(), 4);
  EXPECT_EQ(four.batch(0, 4).labels, (Labels{0, 2, 5, 7}));
  const Batch last = four.batch(2, 2);  // the same however it is cut
  EXPECT_EQ(last.labels, (Labels{5, 7}));
  EXPECT_EQ(last.rows, 2);
  EXPECT_EQ(last.first_position, 2U);
  EXPECT_EQ(last.tokens, (std::vector<int64_t>{50, 51, 52, 70, 71, 72}));
  EXPECT_EQ(last.weights, (std::vector<float>{1, 5, 1, 7}));
  EXPECT_EQ(last.shape.context, 2);
  EXPECT_EQ(four.describe(), "4 samples evenly spread over numbered");
}

TEST(Spread, AllOfASetThatIsNotLarger) {
  const Numbered three(3);
  for (const int64_t count : {3, 4, 1000}) {
    const SpreadBatches all(three, count);
    EXPECT_EQ(all.samples(), 3);
    EXPECT_EQ(all.batch(0, 3).labels, (Labels{0, 1, 2}));
    EXPECT_EQ(all.describe(), "numbered");
  }
}

TEST(Spread, TheFirstOfAnEndlessSet) {
  const Numbered endless(0);
  const SpreadBatches five(endless, 5);
  EXPECT_EQ(five.samples(), 5);
  EXPECT_EQ(five.batch(1, 3).labels, (Labels{1, 2, 3}));
}

}  // namespace
}  // namespace siamese::data

#include "siamese/eval/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/eval/small_images.h"
#include "tests/support/thread_group.h"

namespace siamese::eval {
namespace classification_test {

// The same from the logits by sorting, in double.
Classification written_out(const SmallVit& vit, const RandomPictures& pictures, int64_t count) {
  const c10::NoGradGuard no_grad;
  const at::Tensor logits = vit.get().logits(vit.get().features(pictures.images(count))).to(at::kDouble).contiguous();
  const auto classes = static_cast<size_t>(vit.config.classes);
  Classification result;
  result.confusion.assign(classes, std::vector<int64_t>(classes, 0));
  for (int64_t row = 0; row < count; ++row) {
    const double* const of_row = logits.const_data_ptr<double>() + row * vit.config.classes;
    std::vector<size_t> order(classes);
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return of_row[a] > of_row[b]; });
    const auto label = static_cast<size_t>(pictures.label(static_cast<uint64_t>(row)));
    const auto place = std::find(order.begin(), order.end(), label) - order.begin();
    double sum = 0;
    for (size_t i = 0; i < classes; ++i) sum += std::exp(of_row[i]);
    result.loss += (std::log(sum) - of_row[label]) / static_cast<double>(count);
    result.top1 += place < 1 ? 1 : 0;
    result.top5 += place < 5 ? 1 : 0;
    ++result.confusion[label][order[0]];
  }
  return result;
}

TEST(Classification, CountsAsAPlainLoopDoes) {
  const SmallVit vit;
  const RandomPictures pictures(vit.config, 0);
  const Classification expected = written_out(vit, pictures, 40);
  ASSERT_GT(expected.top1, 0);
  ASSERT_LT(expected.top1, expected.top5);
  ASSERT_LT(expected.top5, 40);
  for (const int64_t rows : {1, 7, 40, 64}) {
    const Classification result = classify(vit.get(), pictures, rows, 40);
    EXPECT_EQ(result.count, 40);
    EXPECT_EQ(result.top1, expected.top1) << rows;
    EXPECT_EQ(result.top5, expected.top5) << rows;
    EXPECT_EQ(result.confusion, expected.confusion) << rows;
    EXPECT_NEAR(result.loss, expected.loss, 1e-6) << rows;
  }
}

TEST(Classification, RanksShareThePasses) {
  const SmallVit vit;
  const RandomPictures pictures(vit.config, 0);
  const Classification alone = classify(vit.get(), pictures, 7, 40);
  std::vector<Classification> all(3);
  comm::ThreadGroup::run(3, [&](comm::Group& group) {
    all[static_cast<size_t>(group.rank())] = classify(vit.get(), pictures, 7, 40, nullptr, &group);
  });
  for (const Classification& one : all) {
    EXPECT_EQ(one.count, alone.count);
    EXPECT_EQ(one.loss, alone.loss);
    EXPECT_EQ(one.top1, alone.top1);
    EXPECT_EQ(one.top5, alone.top5);
    EXPECT_EQ(one.confusion, alone.confusion);
  }
}

TEST(Classification, ASmallSetIsSeenOnce) {
  const SmallVit vit;
  const RandomPictures pictures(vit.config, 9);
  EXPECT_EQ(classify(vit.get(), pictures, 4, 1000).count, 9);
  EXPECT_TRUE(std::isnan(classify(vit.get(), pictures, 4, 0).loss));
}

TEST(Classification, OfEqualLogitsTheLowerClassIsTheEarlierGuess) {
  const SmallVit vit;
  const RandomPictures pictures(vit.config, 0);
  std::vector<int64_t> labels(7, 0);
  for (uint64_t i = 0; i < 50; ++i) ++labels[static_cast<size_t>(pictures.label(i))];
  vit.always({1, 1, 1, 1, 1, 1, 1});
  Classification result = classify(vit.get(), pictures, 8, 50);
  EXPECT_EQ(result.top1, labels[0]);
  EXPECT_EQ(result.top5, 50 - labels[5] - labels[6]);
  EXPECT_NEAR(result.loss, std::log(7.0), 1e-6);
  for (size_t label = 0; label < 7; ++label) EXPECT_EQ(result.confusion[label][0], labels[label]);
  vit.always({0, 1, 0, 2, 0, 2, 0});  // the order of guesses: 3 5 1 0 2 4 6
  result = classify(vit.get(), pictures, 8, 50);
  EXPECT_EQ(result.top1, labels[3]);
  EXPECT_EQ(result.top5, 50 - labels[4] - labels[6]);
  for (size_t label = 0; label < 7; ++label) EXPECT_EQ(result.confusion[label][3], labels[label]);
}

TEST(Classification, FewAndManyClasses) {
  const SmallVit few(3);
  const Classification result = classify(few.get(), RandomPictures(few.config, 0), 8, 20);
  EXPECT_EQ(result.top5, 20);
  EXPECT_LT(result.top1, 20);
  const SmallVit most(kMostConfused), more(kMostConfused + 1);
  EXPECT_EQ(classify(most.get(), RandomPictures(most.config, 0), 8, 3).confusion.size(), 100U);
  EXPECT_TRUE(classify(more.get(), RandomPictures(more.config, 0), 8, 3).confusion.empty());
}

}  // namespace classification_test
}  // namespace siamese::eval

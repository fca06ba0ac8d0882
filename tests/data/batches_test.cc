#include "siamese/data/batches.h"

#include <cmath>
#include <set>
#include <thread>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/images.h"

namespace siamese::data {
namespace {

namespace batches_test {

constexpr SampleShape kShape{.image = 16, .channels = 3, .classes = 12};

DataConfig everything() {
  DataConfig config;
  config.source = Source::shapes;
  config.augment = {.crop = Crop::resized,
                    .flip = true,
                    .erase = 0.5,
                    .operations = 2,
                    .mixup = 0.8,
                    .cutmix = 1,
                    .smoothing = 0.1,
                    .repeats = 2};
  return config;
}

// Image i is i everywhere, `width` x `height`; its label is i % 3.
class Numbered : public ImageSet {
 public:
  Numbered(int64_t count, int64_t width, int64_t height) : count_(count), width_(width), height_(height) {}
  int64_t size() const override { return count_; }
  LabelledImage read(uint64_t index) const override {
    return {io::Image(width_, height_, 1, static_cast<uint8_t>(index)), static_cast<int64_t>(index % 3)};
  }
  std::string describe() const override { return "numbered"; }

 private:
  int64_t count_;
  int64_t width_;
  int64_t height_;
};

std::unique_ptr<Batches> numbered(const DataConfig& config, Split split, int64_t count = 10, uint64_t seed = 1) {
  const SampleShape shape{.image = 4, .channels = 1, .classes = 3};
  return labelled_batches(
      image_samples(std::make_unique<Numbered>(count, 7, 5), Fit::middle, config, split, shape, seed), config, split,
      shape, seed);
}

// Which image each row shows.
std::vector<int> shown(const Batches& batches, uint64_t first, int64_t rows) {
  const Batch batch = batches.batch(first, rows);
  std::vector<int> indices;
  for (int64_t r = 0; r < rows; ++r) {
    const float value = batch.images[static_cast<size_t>(r * batch.shape.pixels())];
    indices.push_back(static_cast<int>(std::lround((value * 0.5F + 0.5F) * 255)));
    EXPECT_EQ(batch.labels[static_cast<size_t>(r)], indices.back() % 3);
  }
  return indices;
}

TEST(ImageBatches, ABatchDependsOnItsPositionOnly) {
  const auto one = open_batches(everything(), Split::train, kShape, 1);
  const auto two = open_batches(everything(), Split::train, kShape, 1);
  one->batch(0, 6);
  one->batch(100, 3);
  const Batch a = one->batch(12, 6);
  const Batch b = two->batch(12, 6);
  EXPECT_EQ(a.images, b.images);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(a.first_position, 12U);
  EXPECT_EQ(std::ssize(a.images), 6 * 3 * 16 * 16);
  EXPECT_EQ(std::ssize(a.targets), 6 * 12);
  EXPECT_NE(open_batches(everything(), Split::train, kShape, 2)->batch(12, 6).images, a.images);
  EXPECT_NE(one->batch(18, 6).images, a.images);
}

TEST(ImageBatches, ThreadsSeeTheSame) {
  const auto batches = open_batches(everything(), Split::train, kShape, 1);
  std::vector<Batch> made(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < made.size(); ++i) {
    threads.emplace_back([&, i] { made[i] = batches->batch(i % 4 * 5, 5); });
  }
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(made[i].images, made[i + 4].images);
    EXPECT_EQ(made[i].images, batches->batch(i * 5, 5).images);
  }
}

TEST(ImageBatches, TheTestSideIsPlain) {
  const auto batches = open_batches(everything(), Split::test, kShape, 1);
  DataConfig plain;
  plain.source = Source::shapes;
  const Batch batch = batches->batch(3, 4);
  EXPECT_TRUE(batch.targets.empty());
  EXPECT_EQ(batch.images, open_batches(plain, Split::test, kShape, 2)->batch(3, 4).images);
  EXPECT_EQ(batches->samples(), 0);
}

TEST(ImageBatches, TrainingIsANewPermutationEachEpochTestIsInOrder) {
  const auto test = numbered({}, Split::test);
  EXPECT_EQ(test->samples(), 10);
  EXPECT_EQ(shown(*test, 8, 4), (std::vector<int>{8, 9, 0, 1}));
  const auto train = numbered({}, Split::train);
  const auto first = shown(*train, 0, 10);
  const auto second = shown(*train, 10, 10);
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 10U);
  EXPECT_EQ(std::set<int>(second.begin(), second.end()).size(), 10U);
  EXPECT_NE(first, second);
  EXPECT_EQ(shown(*numbered({}, Split::train), 10, 10), second);
  EXPECT_NE(shown(*numbered({}, Split::train, 10, 2), 0, 10), first);
}

TEST(ImageBatches, ALimitKeepsTheFirst) {
  DataConfig config;
  config.limit = 4;
  const auto train = numbered(config, Split::train);
  EXPECT_EQ(train->samples(), 4);
  const auto epoch = shown(*train, 4, 4);
  EXPECT_EQ(std::set<int>(epoch.begin(), epoch.end()), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(numbered(config, Split::test)->samples(), 10);
  EXPECT_EQ(numbered(config, Split::train, 0)->samples(), 4);  // of an endless set
}

TEST(ImageBatches, RepeatsAreNeighbours) {
  DataConfig config;
  config.augment.repeats = 3;
  const auto train = numbered(config, Split::train);
  EXPECT_EQ(train->samples(), 30);
  const auto epoch = shown(*train, 0, 30);
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(epoch[i], epoch[i / 3 * 3]);
  EXPECT_EQ(std::set<int>(epoch.begin(), epoch.end()).size(), 10U);
  EXPECT_EQ(numbered(config, Split::test)->samples(), 10);
}

TEST(ImageBatches, RandomImagesAreInRange) {
  DataConfig config;
  config.source = Source::random;
  const SampleShape shape{.image = 5, .channels = 4, .classes = 7};
  const Batch batch = open_batches(config, Split::train, shape, 3)->batch(9, 50);
  ASSERT_EQ(std::ssize(batch.images), 50 * 100);
  for (const float value : batch.images) EXPECT_TRUE(value >= -1 && value <= 1);
  EXPECT_EQ(std::set<float>(batch.images.begin(), batch.images.end()).size(),
            256U);  // those of 8 bits, and all of them
  std::set<int64_t> labels(batch.labels.begin(), batch.labels.end());
  EXPECT_EQ(*labels.begin(), 0);
  EXPECT_EQ(*labels.rbegin(), 6);
  EXPECT_EQ(open_batches(config, Split::train, shape, 3)->batch(9, 50).images, batch.images);
  EXPECT_NE(open_batches(config, Split::test, shape, 3)->batch(9, 50).images, batch.images);
}

TEST(ImageBatches, SourceAndModelMustFit) {
  const auto open_error = [](Source source, const SampleShape& shape) {
    DataConfig config;
    config.source = source;
    config.train = {"a"};
    return error_of<UsageError>([&] { open_batches(config, Split::train, shape, 1); });
  };
  EXPECT_EQ(
      open_error(Source::arithmetic, kShape),
      "data.source: expected shapes, idx, cifar, folder, latents or random for a model of images, got arithmetic");
  EXPECT_EQ(open_error(Source::shapes, {.context = 8, .vocab = 16}),
            "data.source: expected arithmetic, text, tokens or random for a model of text, got shapes");
  EXPECT_EQ(open_error(Source::shapes, {.image = 16, .channels = 3, .classes = 11}),
            "model.classes: expected at least 12 for data.source=shapes, got 11");
  EXPECT_EQ(open_error(Source::shapes, {.image = 16, .channels = 2, .classes = 12}),
            "model.channels: expected 1 or 3 for data.source=shapes, got 2");
  EXPECT_EQ(open_error(Source::random, {.image = 16, .channels = 2}), "model.classes: expected at least 1, got 0");
}

}  // namespace batches_test
}  // namespace
}  // namespace siamese::data

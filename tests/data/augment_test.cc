#include "siamese/data/augment.h"

#include <cmath>
#include <set>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/pixels.h"

namespace siamese::data {
namespace {

namespace augment_test {

io::Image counted(int64_t width, int64_t height, int64_t channels = 1) {
  io::Image image(width, height, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7 % 251);
  return image;
}

TEST(Augment, FlipMirrorsRows) {
  const io::Image image = counted(5, 3, 3);
  const io::Image out = flipped(image);
  for (int64_t i = 0; i < 15; ++i) {
    for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(out.at(i % 5, i / 5)[c], image.at(4 - i % 5, i / 5)[c]);
  }
  EXPECT_EQ(flipped(out), image);
}

TEST(Augment, ShiftMovesAndReflects) {
  io::Image row(4, 1, 1);
  row.pixels = {1, 2, 3, 4};
  EXPECT_EQ(shifted(row, 2, 0).pixels, (std::vector<uint8_t>{3, 2, 1, 2}));
  EXPECT_EQ(shifted(row, -2, 0).pixels, (std::vector<uint8_t>{3, 4, 3, 2}));
  EXPECT_EQ(shifted(row, 0, 1), row);
  const io::Image image = counted(6, 6);
  EXPECT_EQ(shifted(image, 0, 0), image);
  EXPECT_EQ(shifted(image, 1, 2).at(3, 4)[0], image.at(2, 2)[0]);
}

TEST(Augment, RandomPartsLieInsideAndHaveTheAskedSizes) {
  Draws draws(1, 2);
  double smallest = 1;
  double largest = 0;
  for (int i = 0; i < 5000; ++i) {
    const Box box = random_part(64, 48, draws);
    ASSERT_TRUE(box.x >= 0 && box.y >= 0 && box.x + box.width <= 64 && box.y + box.height <= 48);
    const double share = box.width * box.height / (64 * 48);
    const double aspect = box.width / box.height;
    ASSERT_TRUE(aspect > 0.7 && aspect < 1.43);
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
  }
  EXPECT_LT(smallest, 0.09);
  EXPECT_GT(smallest, 0.07);
  EXPECT_GT(largest, 0.9);
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{1, 1}, {1, 400}, {400, 1}}) {
    const Box box = random_part(width, height, draws);
    EXPECT_TRUE(box.width >= 1 && box.height >= 1 && box.x >= 0 && box.y >= 0);
    EXPECT_EQ(resize(counted(width, height), box, 8, 8).pixels.size(), 64U);
  }
}

TEST(Augment, ErasingTouchesOneBoxOfTheAskedArea) {
  constexpr int64_t kSize = 32;
  int erased = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    std::vector<float> pixels(3 * kSize * kSize, 100.0F);
    Draws draws(3, i);
    erase_part(pixels, 3, kSize, 0.25, draws);
    int64_t left = kSize, right = -1, top = kSize, bottom = -1, count = 0;
    for (int64_t p = 0; p < kSize * kSize; ++p) {
      if (pixels[static_cast<size_t>(p)] == 100.0F) continue;
      ++count;
      left = std::min(left, p % kSize), right = std::max(right, p % kSize);
      top = std::min(top, p / kSize), bottom = std::max(bottom, p / kSize);
      EXPECT_LT(std::abs(pixels[static_cast<size_t>(p)]), 7.0F);
      EXPECT_NE(pixels[static_cast<size_t>(p + kSize * kSize)], 100.0F);
    }
    if (count == 0) continue;
    ++erased;
    EXPECT_EQ(count, (right - left + 1) * (bottom - top + 1));
    EXPECT_GE(count, 0.015 * kSize * kSize);
    EXPECT_LE(count, 0.36 * kSize * kSize);
  }
  EXPECT_NEAR(erased, 100, 45);
}

TEST(Resize, SameSizeIsTheSameImage) {
  const io::Image image = counted(9, 5, 3);
  EXPECT_EQ(resize(image, 9, 5), image);
  EXPECT_EQ(resize(image, {0, 0, 9, 5}, 9, 5), image);
  EXPECT_EQ(resize(image, {2, 1, 3, 2}, 3, 2).at(1, 1)[2], image.at(3, 2)[2]);
}

double cubic_filter(double t) {
  const double x = std::abs(t), a = -0.5;
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

// The cubic filter written out in two dimensions.
TEST(Resize, IsTheCubicFilter) {
  const io::Image image = counted(13, 9);
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{5, 4}, {26, 20}, {13, 3}, {1, 1}}) {
    const io::Image out = resize(image, width, height);
    const double sx = 13.0 / static_cast<double>(width);
    const double sy = 9.0 / static_cast<double>(height);
    for (int64_t i = 0; i < width * height; ++i) {
      double value = 0;
      double total = 0;
      for (int64_t p = 0; p < 13 * 9; ++p) {
        const double dx = static_cast<double>(p % 13) + 0.5 - (static_cast<double>(i % width) + 0.5) * sx;
        const double dy = static_cast<double>(p / 13) + 0.5 - (static_cast<double>(i / width) + 0.5) * sy;
        const double weight = cubic_filter(dx / std::max(1.0, sx)) * cubic_filter(dy / std::max(1.0, sy));
        value += weight * image.pixels[static_cast<size_t>(p)];
        total += weight;
      }
      ASSERT_NEAR(out.pixels[static_cast<size_t>(i)], std::clamp(value / total, 0.0, 255.0), 0.501);
    }
  }
}

TEST(Resize, APartCutOutDoesNotSeeWhatLiesAround) {
  io::Image image(12, 12, 1, 200);
  for (int64_t i = 0; i < 16; ++i) *image.at(4 + i % 4, 4 + i / 4) = static_cast<uint8_t>(10 * i);
  io::Image cut(4, 4, 1);
  for (int64_t i = 0; i < 16; ++i) cut.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(10 * i);
  EXPECT_EQ(resize(image, {4, 4, 4, 4}, 7, 9, true), resize(cut, 7, 9));
  EXPECT_NE(resize(image, {4, 4, 4, 4}, 7, 9), resize(cut, 7, 9));
}

TEST(Resize, TheCenterCropLeavesAnEighthOut) {
  io::Image image(32, 16, 1);
  for (int64_t i = 0; i < 32 * 16; ++i) *image.at(i % 32, i / 32) = static_cast<uint8_t>(8 * (i % 32));
  const io::Image out = center_crop(image, 14);
  for (int64_t x = 0; x < 14; ++x) EXPECT_EQ(*out.at(x, 3), 8 * (9 + x));
}

TEST(Pixels, ScalesAndChannels) {
  io::Image image(2, 1, 3);
  image.pixels = {0, 51, 255, 10, 20, 30};
  std::vector<float> out(6);
  PixelScale(Normalize::symmetric, 3).to_floats(image, out);
  EXPECT_FLOAT_EQ(out[0], -1);
  EXPECT_FLOAT_EQ(out[2], -0.6F);
  EXPECT_FLOAT_EQ(out[4], 1);
  PixelScale(Normalize::imagenet, 3).to_floats(image, out);
  EXPECT_FLOAT_EQ(out[1], static_cast<float>((10 / 255.0 - 0.485) / 0.229));
  EXPECT_FLOAT_EQ(out[3], static_cast<float>((20 / 255.0 - 0.456) / 0.224));
  EXPECT_FLOAT_EQ(out[5], static_cast<float>((30 / 255.0 - 0.406) / 0.225));
  EXPECT_EQ(with_channels(image, 3), image);
  EXPECT_EQ(with_channels(image, 1).pixels, (std::vector<uint8_t>{59, 18}));  // 0.587 51 + 0.114 255, 18.15
  EXPECT_EQ(with_channels(with_channels(image, 1), 3).pixels, (std::vector<uint8_t>{59, 59, 59, 18, 18, 18}));
}

}  // namespace augment_test
}  // namespace
}  // namespace siamese::data

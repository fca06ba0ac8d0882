#include "siamese/data/rand_augment.h"

#include <cmath>

#include <gtest/gtest.h>

#include "siamese/data/color_ops.h"
#include "siamese/data/geometry_ops.h"

namespace siamese::data {
namespace {

namespace rand_augment_test {

io::Image random_image(int64_t width, int64_t height, int64_t channels, uint64_t seed = 1) {
  io::Image image(width, height, channels);
  Draws draws(seed, 0);
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(draws.below(256));
  return image;
}

io::Image grey_row(std::vector<uint8_t> values) {
  io::Image image(static_cast<int64_t>(values.size()), 1, 1);
  image.pixels = std::move(values);
  return image;
}

uint8_t cut(double value) { return static_cast<uint8_t>(std::min(255.0, std::max(0.0, std::floor(value + 0.5)))); }

TEST(ColorOps, AutoContrastStretchesEachChannel) {
  EXPECT_EQ(auto_contrast(grey_row({50, 100, 150})).pixels, (std::vector<uint8_t>{0, 127, 255}));
  EXPECT_EQ(auto_contrast(grey_row({7, 7})).pixels, (std::vector<uint8_t>{7, 7}));
  io::Image two(2, 1, 3);
  two.pixels = {10, 0, 5, 20, 255, 5};
  EXPECT_EQ(auto_contrast(two).pixels, (std::vector<uint8_t>{0, 0, 5, 255, 255, 5}));
}

// Pillow's rule written out: with step = (count - last) / 255, value i becomes (step / 2 + pixels below i) / step.
TEST(ColorOps, EqualizeSpreadsEvenly) {
  const io::Image image = random_image(40, 40, 1);
  const io::Image out = equalize(image);
  std::vector<int64_t> counts(256, 0);
  for (const uint8_t v : image.pixels) ++counts[v];
  size_t last = 255;
  while (counts[last] == 0) --last;
  const int64_t step = (1600 - counts[last]) / 255;
  ASSERT_GT(step, 0);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    int64_t below = step / 2;
    for (size_t v = 0; v < image.pixels[i]; ++v) below += counts[v];
    ASSERT_EQ(out.pixels[i], std::min<int64_t>(255, below / step));
  }
  EXPECT_EQ(equalize(grey_row({9, 9, 9})).pixels, (std::vector<uint8_t>{9, 9, 9}));
}

TEST(ColorOps, PointOperations) {
  const io::Image row = grey_row({0, 100, 127, 128, 200, 255});
  EXPECT_EQ(invert(row).pixels, (std::vector<uint8_t>{255, 155, 128, 127, 55, 0}));
  EXPECT_EQ(posterize(row, 1).pixels, (std::vector<uint8_t>{0, 0, 0, 128, 128, 128}));
  EXPECT_EQ(posterize(row, 8), row);
  EXPECT_EQ(posterize(row, 0).pixels, std::vector<uint8_t>(6, 0));
  EXPECT_EQ(solarize(row, 128).pixels, (std::vector<uint8_t>{0, 100, 127, 127, 55, 0}));
  EXPECT_EQ(solarize(row, 256), row);
  EXPECT_EQ(solarize_add(row, 50).pixels, (std::vector<uint8_t>{50, 150, 177, 128, 200, 255}));
}

TEST(ColorOps, BlendsAreTheirEquations) {
  for (const int64_t channels : {1, 3}) {
    const io::Image image = random_image(7, 5, channels);
    const auto grey = [&](int64_t x, int64_t y) {
      const uint8_t* p = image.at(x, y);
      return channels == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
    };
    double mean = 0;
    for (int64_t i = 0; i < 35; ++i) mean += grey(i % 7, i / 7) / 35;
    for (const double factor : {0.1, 0.5, 1.0, 1.9}) {
      const io::Image colored = color(image, factor);
      const io::Image contrasted = contrast(image, factor);
      const io::Image brighter = brightness(image, factor);
      const io::Image sharper = sharpness(image, factor);
      for (int64_t i = 0; i < 35 * channels; ++i) {
        const int64_t x = i / channels % 7;
        const int64_t y = i / channels / 7;
        const int64_t c = i % channels;
        const double v = image.at(x, y)[c];
        ASSERT_NEAR(colored.at(x, y)[c], cut(grey(x, y) + factor * (v - grey(x, y))), 1);
        ASSERT_NEAR(contrasted.at(x, y)[c], cut(mean + factor * (v - mean)), 1);
        ASSERT_NEAR(brighter.at(x, y)[c], cut(factor * v), 1);
        double smooth = v;
        if (x > 0 && y > 0 && x < 6 && y < 4) {
          smooth = 4 * v;
          for (int64_t k = 0; k < 9; ++k) smooth += image.at(x - 1 + k % 3, y - 1 + k / 3)[c];
          smooth /= 13;
        }
        ASSERT_NEAR(sharper.at(x, y)[c], cut(smooth + factor * (v - smooth)), 1);
      }
    }
    EXPECT_EQ(color(image, 1), image);
    EXPECT_EQ(contrast(image, 1), image);
    EXPECT_EQ(brightness(image, 1), image);
    EXPECT_EQ(sharpness(image, 1), image);
  }
}

TEST(GeometryOps, QuarterTurnsAreExact) {
  const io::Image image = random_image(6, 6, 3);
  const io::Image turned = rotate(image, 90);
  for (int64_t i = 0; i < 36; ++i) {
    // Counter-clockwise: what was at the right edge is at the top.
    for (int64_t c = 0; c < 3; ++c) ASSERT_EQ(turned.at(i % 6, i / 6)[c], image.at(5 - i / 6, i % 6)[c]);
  }
  EXPECT_EQ(rotate(rotate(image, 90), -90), image);
  EXPECT_EQ(rotate(image, 0), image);
}

TEST(GeometryOps, TranslationMovesPixelsAndFillsGrey) {
  const io::Image image = random_image(5, 4, 1);
  const io::Image moved = translate(image, 2, -1);
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t x = i % 5 + 2;
    const int64_t y = i / 5 - 1;
    ASSERT_EQ(moved.at(i % 5, i / 5)[0], x < 5 && y >= 0 ? image.at(x, y)[0] : kFill);
  }
  EXPECT_EQ(translate(grey_row({10, 21}), 0.5, 0).pixels, (std::vector<uint8_t>{cut(15.5), cut((21 + 128) / 2.0)}));
}

TEST(GeometryOps, ShearMovesRowsByTheirDistanceFromTheMiddle) {
  const io::Image image = random_image(5, 5, 1);
  const io::Image across = shear_x(image, 1);
  const io::Image down = shear_y(image, 1);
  for (int64_t i = 0; i < 25; ++i) {
    const int64_t x = i % 5;
    const int64_t y = i / 5;
    const int64_t from_x = x + y - 2;
    const int64_t from_y = y + x - 2;
    ASSERT_EQ(across.at(x, y)[0], from_x >= 0 && from_x < 5 ? image.at(from_x, y)[0] : kFill);
    ASSERT_EQ(down.at(x, y)[0], from_y >= 0 && from_y < 5 ? image.at(x, from_y)[0] : kFill);
  }
}

TEST(RandAugment, StrengthZeroIsTheIdentityWhereThereIsAStrength) {
  const io::Image image = random_image(8, 8, 3);
  for (int i = 0; i < kOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    const io::Image out = apply(image, operation, 0, 1);
    if (operation == Operation::posterize) {
      EXPECT_EQ(out, posterize(image, 4));  // timm's: four bits at the weakest
    } else if (i > static_cast<int>(Operation::invert)) {
      EXPECT_EQ(out, image) << i;
    }
  }
}

TEST(RandAugment, StrengthsAreThoseOfTheTable) {
  const io::Image image = random_image(20, 20, 3);
  EXPECT_EQ(apply(image, Operation::rotate, 10, -1), rotate(image, -30));
  EXPECT_EQ(apply(image, Operation::posterize, 5, 1), posterize(image, 2));
  EXPECT_EQ(apply(image, Operation::solarize, 5, 1), solarize(image, 128));
  EXPECT_EQ(apply(image, Operation::solarize_add, 10, 1), solarize_add(image, 110));
  EXPECT_EQ(apply(image, Operation::color, 10, 1), color(image, 1.9));
  EXPECT_EQ(apply(image, Operation::contrast, 10, -1), contrast(image, 0.1));
  EXPECT_EQ(apply(image, Operation::brightness, 5, -1), brightness(image, 0.55));
  EXPECT_EQ(apply(image, Operation::sharpness, 5, 1), sharpness(image, 1.45));
  EXPECT_EQ(apply(image, Operation::shear_x, 10, 1), shear_x(image, 0.3));
  EXPECT_EQ(apply(image, Operation::shear_y, 10, -1), shear_y(image, -0.3));
  EXPECT_EQ(apply(image, Operation::translate_x, 10, 1), translate(image, 9, 0));
  EXPECT_EQ(apply(image, Operation::translate_y, 10, -1), translate(image, 0, -9));
}

TEST(RandAugment, NoneIsNoneAndManyAreDeterministic) {
  const io::Image image = random_image(16, 16, 3);
  AugmentConfig config;
  Draws none(1, 1);
  EXPECT_EQ(rand_augment(image, config, none), image);
  config.operations = 2;
  int changed = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    Draws one(1, i);
    Draws two(1, i);
    const io::Image out = rand_augment(image, config, one);
    EXPECT_EQ(out, rand_augment(image, config, two));
    changed += out == image ? 0 : 1;
  }
  EXPECT_NEAR(changed, 300, 45);  // each of the two is done with probability 1/2: 3/4 change, five deviations
}

}  // namespace rand_augment_test
}  // namespace
}  // namespace siamese::data

#include "siamese/data/shapes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/batches.h"
#include "siamese/data/shape_outlines.h"
#include "siamese/data/shape_render.h"

namespace siamese::data {
namespace {

namespace shapes_test {

constexpr double kFraction = 0.1;

DataConfig shapes_config() {
  DataConfig config;
  config.source = Source::shapes;
  return config;
}

// 4 x 4 x 4 bins of colour, as shares.
std::vector<double> histogram(const io::Image& image) {
  std::vector<double> bins(64, 0);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    const size_t bin = image.pixels[i] / 64 * 16 + image.pixels[i + 1] / 64 * 4 + image.pixels[i + 2] / 64;
    bins[bin] += 3.0 / static_cast<double>(image.pixels.size());
  }
  return bins;
}

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

TEST(Shapes, ColoursDoNotTellTheClass) {
  const auto train = shape_set(shapes_config(), Split::train, 32, 1);
  const auto test = shape_set(shapes_config(), Split::test, 32, 1);
  std::vector<std::vector<double>> centroids(kShapeClasses, std::vector<double>(64, 0));
  std::vector<double> counts(kShapeClasses, 0);
  for (uint64_t i = 0; i < 2000; ++i) {
    const auto sample = train->read(i);
    const auto label = static_cast<size_t>(sample.label);
    const auto bins = histogram(sample.image);
    for (size_t j = 0; j < 64; ++j) centroids[label][j] += bins[j];
    counts[label] += 1;
  }
  for (size_t k = 0; k < kShapeClasses; ++k) {
    EXPECT_NEAR(counts[k] / 2000, 1.0 / kShapeClasses, 0.025) << k;  // four standard deviations
    for (double& bin : centroids[k]) bin /= counts[k];
  }
  int right = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto sample = test->read(i);
    const auto bins = histogram(sample.image);
    const auto nearest = std::min_element(centroids.begin(), centroids.end(), [&](const auto& a, const auto& b) {
      return squared_distance(a, bins) < squared_distance(b, bins);
    });
    right += nearest - centroids.begin() == sample.label ? 1 : 0;
  }
  EXPECT_LT(right, 250);
}

TEST(Shapes, TrainingAndTestShareNoOutline) {
  std::set<Outline> seen;
  int tests = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    const Outline outline = draw_scene(Split::train, kFraction, 3, i).outline;
    seen.insert(outline);
    seen.insert(mirror_image(outline));
    EXPECT_EQ(side_of(outline, kFraction), side_of(mirror_image(outline), kFraction));
  }
  for (uint64_t i = 0; i < 20000; ++i) {
    tests += seen.contains(draw_scene(Split::test, kFraction, 4, i).outline) ? 1 : 0;
  }
  EXPECT_EQ(tests, 0);
}

TEST(Shapes, AMirroredOutlineIsTheMirroredPicture) {
  for (uint64_t i = 0; i < 200; ++i) {
    Scene scene = draw_scene(Split::train, kFraction, 3, i);
    scene.shape.pattern = scene.background.pattern = Pattern::plain;
    scene.occluders = 0;
    scene.noise = 0;
    Scene mirrored = scene;
    mirrored.outline = mirror_image(scene.outline);
    const io::Image a = render(scene, 32);
    const io::Image b = render(mirrored, 32);
    for (int64_t y = 0; y < 32; ++y) {
      for (int64_t x = 0; x < 32; ++x) ASSERT_NEAR(a.at(x, y)[1], b.at(31 - x, y)[1], 1) << i;
    }
  }
}

TEST(Shapes, TheShareOfTheTestSideIsAsAsked) {
  for (const double fraction : {0.1, 0.5}) {
    int test = 0;
    int all = 0;
    for (int kind = 0; kind < kShapeClasses; ++kind) {
      for (int i = 0; i < kPlaces * kPlaces * kSizes; ++i) {
        const Outline outline{
            .kind = kind, .column = i % kPlaces, .row = i / kPlaces % kPlaces, .size = i / kPlaces / kPlaces};
        test += side_of(outline, fraction) == Split::test ? 1 : 0;
        ++all;
      }
    }
    EXPECT_NEAR(static_cast<double>(test) / all, fraction, 0.015);
  }
}

TEST(Shapes, PicturesDependOnSeedAndIndexOnly) {
  const auto one = shape_set(shapes_config(), Split::train, 32, 1);
  const auto again = shape_set(shapes_config(), Split::train, 32, 1);
  const auto other = shape_set(shapes_config(), Split::train, 32, 2);
  const io::Image last = one->read(9).image;
  EXPECT_EQ(one->read(3).image, again->read(3).image);
  EXPECT_EQ(again->read(9).image, last);
  EXPECT_NE(other->read(9).image, last);
  EXPECT_NE(one->read(8).image, last);
  const auto test = shape_set(shapes_config(), Split::test, 32, 1);
  EXPECT_EQ(test->read(7).image, shape_set(shapes_config(), Split::test, 32, 2)->read(7).image);
}

TEST(Shapes, ALimitMakesAFixedSet) {
  DataConfig config = shapes_config();
  EXPECT_EQ(shape_set(config, Split::train, 32, 1)->size(), 0);
  config.limit = 50;
  const auto set = shape_set(config, Split::train, 32, 1);
  EXPECT_EQ(set->size(), 50);
  EXPECT_EQ(set->read(7).image, shape_set(config, Split::train, 32, 2)->read(7).image);
  EXPECT_EQ(shape_set(config, Split::test, 32, 1)->size(), 0);
}

TEST(Shapes, TheSameSceneAtAnySize) {
  const Scene scene = draw_scene(Split::train, kFraction, 1, 11);
  const io::Image small = render(scene, 16);
  const io::Image large = render(scene, 64);
  EXPECT_EQ(small.pixels.size(), 16U * 16 * 3);
  double difference = 0;
  for (int64_t y = 0; y < 16; ++y) {
    for (int64_t x = 0; x < 16; ++x) {
      double mean = 0;
      for (int64_t i = 0; i < 16; ++i) mean += large.at(4 * x + i % 4, 4 * y + i / 4)[0] / 16.0;
      difference += std::abs(mean - small.at(x, y)[0]) / 256;
    }
  }
  EXPECT_LT(difference, 20);
}

// Every outline has an inside and an edge about where the formula says, and no two classes look alike.
TEST(Shapes, OutlinesDifferPairwise) {
  std::vector<std::vector<bool>> masks;
  for (const auto& kind : kOutlines) {
    std::vector<bool> mask;
    for (int i = 0; i < 64 * 64; ++i) {
      const float x = static_cast<float>(i % 64) / 24 - 1.3F;
      const float y = static_cast<float>(i / 64) / 24 - 1.3F;
      mask.push_back(kind.distance(x, y) < 0);
      if (x * x + y * y > 1.3F * 1.3F) {
        EXPECT_FALSE(mask.back()) << kind.name;
      }
    }
    const auto inside = std::count(mask.begin(), mask.end(), true);
    EXPECT_GT(inside, 500) << kind.name;
    for (const auto& other : masks) {
      int64_t differing = 0;
      for (size_t i = 0; i < mask.size(); ++i) differing += mask[i] != other[i] ? 1 : 0;
      EXPECT_GT(differing, 100) << kind.name;
    }
    masks.push_back(mask);
  }
}

// What turning or mirroring leaves as it is must not count as another outline, or one picture had both sides.
TEST(Shapes, OnlyWhatChangesThePictureIsDrawn) {
  for (const auto& kind : kOutlines) {
    bool turning_changes = false;
    bool mirroring_changes = false;
    for (int i = 0; i < 400; ++i) {
      const float x = static_cast<float>(i % 20) / 10 - 0.95F;
      const float y = static_cast<float>(i / 20) / 10 - 0.95F;
      const float here = kind.distance(x, y);
      const float turned = kind.distance(0.99F * x - 0.14106736F * y, 0.14106736F * x + 0.99F * y);
      turning_changes |= std::abs(turned - here) > 1e-3F;
      mirroring_changes |= std::abs(kind.distance(-x, y) - here) > 1e-3F;
    }
    EXPECT_EQ(kind.turns, turning_changes) << kind.name;
    EXPECT_EQ(kind.mirrors, mirroring_changes) << kind.name;
  }
  for (uint64_t i = 0; i < 2000; ++i) {
    const Outline outline = draw_scene(Split::train, kFraction, 3, i).outline;
    const auto& kind = kOutlines[static_cast<size_t>(outline.kind)];
    EXPECT_TRUE(kind.turns || outline.degrees == 0) << kind.name;
    EXPECT_TRUE(kind.mirrors || !outline.mirrored) << kind.name;
  }
}

TEST(Shapes, AFractionThatLeavesNothingIsRefused) {
  DataConfig config = shapes_config();
  config.test_fraction = 1e-12;
  EXPECT_EQ(error_of<UsageError>([&] { shape_set(config, Split::test, 32, 1); }),
            "data.test_fraction: 1e-12 leaves no test outlines of one class");
}

TEST(Shapes, TwelveNames) {
  EXPECT_EQ(shape_names().size(), 12U);
  EXPECT_EQ(class_names(shapes_config()), shape_names());
  const DataSizes sizes = sizes_of(shapes_config());
  EXPECT_TRUE(sizes.images);
  EXPECT_EQ(sizes.classes, 12);
  EXPECT_EQ(sizes.channels, 3);
}

}  // namespace shapes_test
}  // namespace
}  // namespace siamese::data

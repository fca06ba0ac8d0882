#include "siamese/eval/samples.h"

#include <filesystem>

#include "tests/eval/small_images.h"
#include "tests/support/threads.h"
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/eval/feature_distance.h"
#include "siamese/io/atomic_file.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace samples_test {

const SamplerOptions kQuick{.kind = SamplerKind::ddpm, .steps = 3, .guidance = 1.5, .seed = 5};

// Up to the rounding of matrix products, whose order of summation follows the number of rows.
TEST(Samples, AnImageIsTheSameWhateverTheOthersAre) {
  const SmallDit dit;
  const auto labels = all_classes(dit.config.classes);
  const at::Tensor whole = draw_samples(dit.get(), labels, 9, 9, kQuick);
  EXPECT_EQ(whole.sizes(), (std::vector<int64_t>{9, 3, 6, 6}));
  for (const int64_t rows : {1, 2, 4, 64}) {
    testing::expect_relative(draw_samples(dit.get(), labels, 9, rows, kQuick), whole, 1e-5,
                             "rows " + std::to_string(rows));
  }
  testing::expect_relative(draw_samples(dit.get(), labels, 5, 9, kQuick), whole.narrow(0, 0, 5), 1e-5, "fewer");
  EXPECT_GT(testing::largest_difference(whole[0], whole[7]), 0.1);  // of the same class
}

TEST(Samples, TheSameBitsAtAnyThreadCount) {
  const SmallDit dit;
  const auto labels = all_classes(dit.config.classes);
  for (const auto precision : {ops::Precision::float32, ops::Precision::bfloat16}) {
    const ops::PrecisionGuard guard(precision);
    for (const int64_t rows : {1, 5, 9}) {
      for (const auto kind : {SamplerKind::ddim, SamplerKind::ddpm}) {
        SamplerOptions options = kQuick;
        options.kind = kind;
        testing::expect_same_at_any_thread_count(std::string(enum_text(kind)) + " " + std::to_string(rows), [&] {
          return std::vector<at::Tensor>{draw_samples(dit.get(), labels, 9, rows, options)};
        });
      }
    }
  }
}

// Image i is of class labels[i % n], and of nothing else: it is drawn from the noise of its place.
TEST(Samples, LabelsComeInTurns) {
  const SmallDit dit;
  const at::Tensor turns = draw_samples(dit.get(), {4, 2}, 5, 3, kQuick);
  const at::Tensor fours = draw_samples(dit.get(), {4}, 5, 3, kQuick);
  const at::Tensor twos = draw_samples(dit.get(), {2}, 5, 3, kQuick);
  for (int64_t i = 0; i < 5; ++i) {
    testing::expect_same_bits(turns[i], (i % 2 == 0 ? fours : twos)[i], std::to_string(i));
    EXPECT_FALSE(at::equal(fours[i], twos[i])) << i;
  }
}

TEST(Samples, TheClassifierComparesFeaturesAndClasses) {
  const c10::NoGradGuard no_grad;
  const SmallVit vit;
  const RandomPictures pictures(vit.config, 30);
  const at::Tensor images = testing::randn({12, 3, 6, 6}, 3, at::kFloat);
  const std::vector<int64_t> labels = {1, 0, 5};
  const at::Tensor features = vit.get().features(images);
  const at::Tensor guesses = vit.get().logits(features).argmax(1);
  int agreed = 0;
  for (int64_t i = 0; i < 12; ++i) agreed += guesses[i].item<int64_t>() == labels[static_cast<size_t>(i % 3)] ? 1 : 0;
  ASSERT_GT(agreed, 0);
  const auto distance = [&](int64_t reference) {
    return feature_distance(features, vit.get().features(pictures.images(reference))).frechet;
  };
  for (const int64_t rows : {5, 30}) {
    const SampleQuality few = judge_samples(vit.get(), images, labels, pictures, rows, 11);
    EXPECT_NEAR(few.feature_distance, distance(11), 1e-4);
    EXPECT_EQ(few.class_agreement, agreed / 12.0);
    // No more than there are.
    EXPECT_NEAR(judge_samples(vit.get(), images, labels, pictures, rows, 500).feature_distance, distance(30), 1e-4);
  }
  EXPECT_GT(std::abs(distance(11) - distance(30)), 0.01);
  // The judge computes in float32, whatever the model is evaluated in.
  const SampleQuality judged = judge_samples(vit.get(), images, labels, pictures, 5, 11);
  const ops::PrecisionGuard half(ops::Precision::bfloat16);
  EXPECT_EQ(judge_samples(vit.get(), images, labels, pictures, 5, 11).feature_distance, judged.feature_distance);
}

TEST(Samples, AGridHasImagesInRowsWithWhiteBetween) {
  constexpr int64_t kWidth = 3, kHeight = 2;
  const at::Tensor images = testing::randn({5, 3, kHeight, kWidth}, 8, at::kFloat);
  const io::Image grid = image_grid(images);
  ASSERT_EQ(grid.width, 3 * kWidth + 2 * 2);
  ASSERT_EQ(grid.height, 2 * kHeight + 2);
  ASSERT_EQ(grid.channels, 3);
  for (int64_t y = 0; y < grid.height; ++y) {
    for (int64_t x = 0; x < grid.width; ++x) {
      const int64_t column = x / (kWidth + 2), row = y / (kHeight + 2), i = row * 3 + column;
      const bool inside = x % (kWidth + 2) < kWidth && y % (kHeight + 2) < kHeight && i < 5;
      for (int64_t c = 0; c < 3; ++c) {
        int expected = 255;
        if (inside) {
          const double value = images[i][c][y % (kHeight + 2)][x % (kWidth + 2)].item<double>();
          expected = static_cast<int>(std::nearbyint((std::clamp(value, -1.0, 1.0) + 1) * 127.5));
        }
        EXPECT_EQ(static_cast<int>(grid.at(x, y)[c]), expected) << x << " " << y << " " << c;
      }
    }
  }
}

TEST(Samples, GridsOfGreyAndOfOne) {
  const io::Image one = image_grid(at::tensor({-1.0F, 1.0F, 0.0F, -3.0F}).view({1, 1, 2, 2}));
  EXPECT_EQ(one.channels, 1);
  EXPECT_EQ(one.width, 2);
  EXPECT_EQ(one.pixels, (std::vector<uint8_t>{0, 255, 128, 0}));
  const io::Image four = image_grid(at::zeros({4, 1, 2, 2}));
  EXPECT_EQ(four.width, 6);
  EXPECT_EQ(four.height, 6);
}

TEST(Samples, LatentsAreNoPicture) {
  try {
    image_grid(at::zeros({2, 4, 8, 8}));
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("1 or 3 channels, got 4"), std::string::npos) << error.what();
  }
}

}  // namespace samples_test
TEST(Samples, AreBytesForScriptsOfFid) {
  const at::Tensor images = at::tensor({-1.0F, 1.0F, 0.0F, -3.0F, 0.5F, -0.5F}).view({1, 3, 1, 2});
  const at::Tensor bytes = image_bytes(images);
  ASSERT_EQ(bytes.sizes(), (at::IntArrayRef{1, 1, 2, 3}));
  EXPECT_EQ(bytes[0][0][0][0].item<int>(), 0);
  EXPECT_EQ(bytes[0][0][0][1].item<int>(), 128);  // 127.5, to even
  EXPECT_EQ(bytes[0][0][1][0].item<int>(), 255);
  EXPECT_EQ(bytes[0][0][1][1].item<int>(), 0);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("siamese_npz_images_" + std::to_string(::getpid()) + ".npz");
  write_image_npz(file, at::ones({2, 1, 4, 5}));  // grey ones three times
  const std::string archive = io::read_file(file);
  EXPECT_NE(archive.find("'shape': (2, 4, 5, 3)"), std::string::npos);
  EXPECT_NE(archive.find(std::string(2 * 4 * 5 * 3, '\xff')), std::string::npos);
  std::filesystem::remove(file);
  EXPECT_THROW(write_image_npz(file, at::zeros({2, 4, 8, 8})), UsageError);
}

}  // namespace siamese::eval

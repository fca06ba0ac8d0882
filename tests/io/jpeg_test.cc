#include "siamese/io/jpeg.h"

#include <cmath>

#include "tests/io/jpeg_sample.h"
#include "tests/io/support.h"

#include "siamese/io/image_file.h"
#include "siamese/io/png.h"

namespace siamese::io {
namespace {

namespace jpeg_test {

class Jpeg : public InFolder {};

// Smooth, so that compression hardly changes it.
std::vector<unsigned char> slope(int width, int height, int components) {
  std::vector<unsigned char> pixels;
  for (int i = 0; i < width * height * components; ++i) {
    pixels.push_back(static_cast<unsigned char>(60 + 3 * (i / components % width) + 20 * (i % components)));
  }
  return pixels;
}

TEST_F(Jpeg, ReadsGreyAndColour) {
  for (const int components : {1, 3}) {
    const auto pixels = slope(20, 12, components);
    const Image image = read_jpeg(put("a.jpg", jpeg_sample(20, 12, components, pixels)));
    ASSERT_EQ(image.width, 20);
    ASSERT_EQ(image.height, 12);
    ASSERT_EQ(image.channels, components);
    for (size_t i = 0; i < pixels.size(); ++i) ASSERT_NEAR(image.pixels[i], pixels[i], 6) << i;
  }
}

// libjpeg writes four components with Adobe's marker: 255 is no ink.
TEST_F(Jpeg, PrintColoursBecomeRgb) {
  const auto inks = slope(8, 8, 4);
  const Image image = read_jpeg(put("print.jpg", jpeg_sample(8, 8, 4, inks)));
  ASSERT_EQ(image.channels, 3);
  for (size_t pixel = 0; pixel < 64; ++pixel) {
    for (size_t c = 0; c < 3; ++c) {
      const double wanted = inks[4 * pixel + c] * inks[4 * pixel + 3] / 255.0;
      ASSERT_NEAR(image.pixels[3 * pixel + c], wanted, 8) << pixel;
    }
  }
}

TEST_F(Jpeg, EveryTruncationIsRefusedWithTheFile) {
  const std::string whole = jpeg_sample(16, 16, 3, slope(16, 16, 3));
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto path = put("cut.jpg", whole.substr(0, length));
    expect_error<DataError>([&] { read_jpeg(path); }, {"cut.jpg", "JPEG"});
  }
}

TEST_F(Jpeg, EveryBrokenByteIsRefusedOrReadWithoutHarm) {
  const std::string whole = jpeg_sample(16, 16, 3, slope(16, 16, 3));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x5A);
    try {
      decode_jpeg(std::as_bytes(std::span(broken)), "broken.jpg");
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("broken.jpg"), std::string::npos);
    }
  }
}

TEST_F(Jpeg, HugeSizesAreRefused) {
  std::string huge = jpeg_sample(16, 16, 3, slope(16, 16, 3));
  const size_t frame = huge.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, "\xFF\x00\xFF\x00", 4);  // height, width: 65280 each
  expect_error<DataError>([&] { decode_jpeg(std::as_bytes(std::span(huge)), "huge.jpg"); },
                          {"huge.jpg", "at most", "65280 x 65280"});
}

TEST_F(Jpeg, FilesAreToldByTheirContent) {
  const auto jpeg = put("a.png", jpeg_sample(4, 4, 1, slope(4, 4, 1)));
  const auto png = put("b.jpg", encode_png(Image(3, 2, 3, 9)));
  const auto text = put("c.jpg", "text");
  EXPECT_TRUE(is_image_file(jpeg));
  EXPECT_TRUE(is_image_file(png));
  EXPECT_FALSE(is_image_file(text));
  EXPECT_FALSE(is_image_file(folder_));
  EXPECT_FALSE(is_image_file(folder_ / "none"));
  EXPECT_EQ(read_image(jpeg).width, 4);
  EXPECT_EQ(read_image(png), Image(3, 2, 3, 9));
  expect_error<DataError>([&] { read_image(text); }, {"c.jpg", "PNG or JPEG"});
}

}  // namespace jpeg_test
}  // namespace
}  // namespace siamese::io

#include "siamese/io/png.h"

#include "tests/io/support.h"
#include <png.h>

#include "siamese/io/atomic_file.h"

namespace siamese::io {
namespace {

namespace png_test {

class Png : public InFolder {};

Image gradient(int64_t width, int64_t height, int64_t channels) {
  Image image(width, height, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 37 % 256);
  return image;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

struct Stored {
  int color_type = PNG_COLOR_TYPE_GRAY;
  int bits = 8;
  bool interlaced = false;
  std::vector<png_color> palette;
  std::vector<png_byte> palette_alpha;
};

void append(png_structp png, png_bytep data, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), count);
}

// Rows exactly as the format stores them.
std::string stored_png(uint32_t width, std::vector<std::string> rows, const Stored& how) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append, nullptr);
  png_set_IHDR(png, info, width, static_cast<uint32_t>(rows.size()), how.bits, how.color_type,
               how.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!how.palette.empty()) png_set_PLTE(png, info, how.palette.data(), static_cast<int>(how.palette.size()));
  if (!how.palette_alpha.empty()) {
    png_set_tRNS(png, info, how.palette_alpha.data(), static_cast<int>(how.palette_alpha.size()), nullptr);
  }
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(reinterpret_cast<png_bytep>(row.data()));
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

Image decoded(const std::string& bytes) { return decode_png(bytes_of(bytes), "a.png"); }

TEST_F(Png, WritesAndReadsBack) {
  for (const int64_t channels : {1, 3}) {
    const Image image = gradient(7, 5, channels);
    write_png(folder_ / "a.png", image);
    EXPECT_EQ(read_png(folder_ / "a.png"), image);
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"a.png"}));
}

TEST_F(Png, ReadsEveryWayOfStoring) {
  EXPECT_EQ(decoded(stored_png(8, {"\x0F"}, {.bits = 1})).pixels,
            (std::vector<uint8_t>{0, 0, 0, 0, 255, 255, 255, 255}));
  EXPECT_EQ(decoded(stored_png(2, {"\x3C"}, {.bits = 4})).pixels, (std::vector<uint8_t>{51, 204}));
  EXPECT_EQ(decoded(stored_png(2, {std::string("\x80\x00\xFF\xFF", 4)}, {.bits = 16})).pixels,
            (std::vector<uint8_t>{128, 255}));
  const Stored palette{
      .color_type = PNG_COLOR_TYPE_PALETTE, .palette = {{10, 20, 30}, {40, 50, 60}}, .palette_alpha = {255, 0}};
  EXPECT_EQ(decoded(stored_png(2, {std::string("\x00\x01", 2)}, palette)).pixels,
            (std::vector<uint8_t>{10, 20, 30, 255, 255, 255}));
  // Half transparent black over white is 127 or 128.
  const Image grey = decoded(stored_png(1, {std::string("\x00\x80", 2)}, {.color_type = PNG_COLOR_TYPE_GRAY_ALPHA}));
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.pixels, (std::vector<uint8_t>{127}));
  const Image color =
      decoded(stored_png(1, {std::string("\x01\x02\x03\xFF", 4)}, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA}));
  EXPECT_EQ(color.pixels, (std::vector<uint8_t>{1, 2, 3}));
  const Image interlaced = decoded(stored_png(3, {"abc", "def", "ghi"}, {.interlaced = true}));
  EXPECT_EQ(std::string(interlaced.pixels.begin(), interlaced.pixels.end()), "abcdefghi");
}

TEST_F(Png, EveryTruncationIsRefusedWithTheFile) {
  const std::string whole = encode_png(gradient(6, 4, 3));
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto path = put("cut.png", whole.substr(0, length));
    expect_error<DataError>([&] { read_png(path); }, {"cut.png", "PNG"});
  }
}

TEST_F(Png, EveryBrokenByteIsRefusedOrReadWithoutHarm) {
  const std::string whole = encode_png(gradient(6, 4, 3));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x5A);
    try {
      EXPECT_LE(decode_png(bytes_of(broken), "broken.png").pixels.size(), 72U);
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("broken.png"), std::string::npos);
    }
  }
}

TEST_F(Png, HugeSizesAreRefusedBeforeMemoryIsAskedFor) {
  // A valid header (its checksum is made anew) of 65536 x 65536 pixels, and nothing else.
  std::string header("IHDR\x00\x01\x00\x00\x00\x01\x00\x00\x08\x02\x00\x00\x00", 17);
  uint32_t crc = 0xFFFFFFFFU;
  for (const char c : header) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
  }
  crc = ~crc;
  std::string file = std::string("\x89PNG\r\n\x1a\n\x00\x00\x00\x0D", 12) + header;
  for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(crc >> shift);
  file += std::string("\x00\x00\x00\x00IDAT\x35\xAF\x06\x1E", 12);
  expect_error<DataError>([&] { decode_png(bytes_of(file), "huge.png"); }, {"huge.png", "at most", "65536 x 65536"});
}

TEST_F(Png, TextIsNotAnImage) {
  expect_error<DataError>([&] { read_png(put("notes.png", "just some text")); }, {"notes.png", "signature"});
  expect_error<DataError>([&] { read_png(folder_ / "none.png"); }, {"none.png"});
}

}  // namespace png_test
}  // namespace
}  // namespace siamese::io

// PNG, JPEG and JSON lines.
#include <span>

#include "tests/hostile/support.h"
#include "tests/io/jpeg_sample.h"

#include "siamese/base/check.h"
#include "siamese/io/jpeg.h"
#include "siamese/io/png.h"

namespace siamese::hostile {
namespace {

std::string refusal(const std::string& file, io::Image (*decode)(std::span<const std::byte>, const std::string&)) {
  try {
    decode(std::as_bytes(std::span(file)), "file");
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// Chunks with a checksum of zero: the property mends them.
std::string chunk(const std::string& type, const std::string& data) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(data.size() >> shift);
  return out + type + data + std::string(4, '\0');
}

std::string png(uint32_t width, uint32_t height, char bits, char color, const std::string& chunks) {
  std::string header;
  for (const uint32_t side : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(side >> shift);
  }
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header + bits + color + std::string(3, '\0')) + chunks;
}

TEST(HostilePng, DamagedFiles) {
  for (const int64_t channels : {1, 3}) {
    io::Image image(4, 3, channels);
    for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 37);
    expect_holds_when_damaged(fuzz::check_png, io::encode_png(image));
  }
}

TEST(HostilePng, HugeSizesInASmallFile) {
  const std::string data = chunk("IDAT", "x\x9c\x03") + chunk("IEND", "");
  for (const char color : {0, 2, 3, 4, 6}) {
    for (const char bits : {1, 2, 4, 8, 16}) {
      for (const auto& [width, height] : {std::pair{16384U, 16384U},
                                          {1U << 20, 256U},
                                          {1U, 1U << 20},
                                          {0U, 1U},
                                          {0xFFFFFFFFU, 0xFFFFFFFFU},
                                          {0x7FFFFFFFU, 1U}}) {
        expect_holds(fuzz::check_png, png(width, height, bits, color, data));
      }
    }
  }
}

TEST(HostilePng, AFileTooShortForItsPixelsIsRefusedBeforeMemoryIsAskedFor) {
  // A valid file, but for its size: the checksum of the header is that of these bytes.
  std::string file = io::encode_png(io::Image(4, 4, 3));
  file.replace(16, 17,
               std::string("\0\0\x40\0\0\0\x40\0\x08\x02\0\0\0"
                           "\x26\xAA\x87\xD3",
                           17));
  EXPECT_NE(refusal(file, io::decode_png).find("16384 x 16384 pixels cannot lie in"), std::string::npos)
      << refusal(file, io::decode_png);
}

TEST(HostilePng, ChunksThatClaimMuch) {
  for (const char* type : {"iTXt", "zTXt", "tEXt", "iCCP", "sPLT", "eXIf", "PLTE", "tRNS", "IDAT", "hIST", "prVt"}) {
    expect_holds(fuzz::check_png, png(1, 1, 8, 0, std::string("\x7F\xFF\xFF\xFF", 4) + type + "abc"));
    expect_holds(fuzz::check_png, png(1, 1, 8, 3, chunk(type, std::string(3000, 'a'))));
    expect_holds(fuzz::check_png, png(1, 1, 8, 0, repeated(chunk(type, ""), 2000)));
  }
}

std::string jpeg(int width, int height, bool progressive) {
  return io::jpeg_sample(width, height, 3, std::vector<unsigned char>(static_cast<size_t>(width * height * 3), 99),
                         progressive);
}

TEST(HostileJpeg, DamagedFiles) {
  expect_holds_when_damaged(fuzz::check_jpeg, jpeg(9, 9, false));
  expect_holds_when_damaged(fuzz::check_jpeg, jpeg(9, 9, true));
}

TEST(HostileJpeg, AFileTooShortForItsPixelsIsRefusedBeforeMemoryIsAskedFor) {
  for (const bool progressive : {false, true}) {
    std::string file = jpeg(16, 16, progressive);
    const size_t frame = file.find(progressive ? "\xFF\xC2" : "\xFF\xC0");
    ASSERT_NE(frame, std::string::npos);
    file.replace(frame + 5, 4, std::string("\x3F\xFF\x3F\xFF", 4));  // 16383 x 16383
    EXPECT_NE(refusal(file, io::decode_jpeg).find("16383 x 16383 pixels cannot lie in"), std::string::npos)
        << refusal(file, io::decode_jpeg);
  }
}

TEST(HostileJpeg, EndlessScansAreRefused) {
  const std::string file = jpeg(16, 16, true);
  const size_t first = file.find("\xFF\xDA"), second = file.find("\xFF\xC4", first);
  ASSERT_LT(second, file.size());
  const std::string endless = file.substr(0, second) + repeated(file.substr(first, second - first), 5000) + "\xFF\xD9";
  EXPECT_NE(refusal(endless, io::decode_jpeg).find("more than 64 scans"), std::string::npos)
      << refusal(endless, io::decode_jpeg);
}

TEST(HostileJsonLines, Lines) {
  expect_holds_when_damaged(fuzz::check_json_lines, "{\"step\": 1, \"loss\": [2.5e-3, null]}\n{\"a\": \"\\u00e9\"}\n");
  for (const std::string& line :
       {std::string(200'000, '['), "{\"a\":" + std::string(200'000, '['), repeated("{\"a\":", 100'000),
        std::string("{\"a\":1e999}"), "{\"a\":" + std::string(1 << 20, '9') + "}",
        "{\"a\":\"" + std::string(1 << 20, 'x') + "\"}", std::string("{\"a\":1}\0{", 9),
        std::string("{\"\xC0\x80\":1}"), std::string("{\"\\ud800\":1}"), std::string("\xEF\xBB\xBF{}"),
        std::string("{}\r"), std::string("NaN"), std::string("{\"a\":NaN}")}) {
    expect_holds(fuzz::check_json_lines, line + "\n");
    expect_holds(fuzz::check_json_lines, "{}\n" + line);
  }
}

}  // namespace
}  // namespace siamese::hostile

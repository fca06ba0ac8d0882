#include "siamese/io/checksum.h"

#include "tests/io/support.h"

namespace siamese::io {
namespace {

TEST(Checksum, IsXxh3) {
  EXPECT_EQ(checksum_text(checksum("")), "2d06800538d394c2");  // as its authors publish it
  EXPECT_EQ(checksum_text(0), "0000000000000000");
  EXPECT_EQ(checksum_from_text("2d06800538d394c2"), checksum(""));
  for (const char* const text : {"", "2d06800538d394c", "2d06800538d394c2a", "2D06800538d394c2", "2d06800538d394 2"}) {
    EXPECT_FALSE(checksum_from_text(text)) << text;
  }
}

TEST(Checksum, PiecesMakeTheSameAsTheWhole) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>(i * i % 251);
  for (const size_t piece : {1, 7, 64, 255, 256, 1024, 2999, 3000}) {
    Checksum sum;
    for (size_t at = 0; at < text.size(); at += piece) {
      const std::string_view part = std::string_view(text).substr(at, piece);
      sum.add(std::as_bytes(std::span(part)));
    }
    EXPECT_EQ(sum.value(), checksum(text)) << piece;
  }
}

TEST(Checksum, ASealFindsEveryFlippedBit) {
  const std::string mark = "\"sum\": \"";
  std::string text = "{\"a\": 1, \"sum\": \"0000000000000000\", \"b\": [2, 3]}\n";
  EXPECT_TRUE(seal_error(text, mark));
  seal(text, mark);
  EXPECT_EQ(seal_error(text, mark), std::nullopt);
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seal_error(flipped, mark)) << bit;
  }
  EXPECT_EQ(seal_error("{}", mark), "its checksum is missing");
  EXPECT_EQ(seal_error("\"sum\": \"123", mark), "its checksum is missing");
}

}  // namespace
}  // namespace siamese::io

#include "siamese/data/codec.h"

#include <numeric>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/arithmetic.h"

namespace siamese::data {
namespace {

std::unique_ptr<Codec> codec_for(Source source) {
  DataConfig config;  // without any file: generating needs none
  config.source = source;
  return make_codec(config);
}

TEST(ArithmeticCodec, IdsAreTheOrderOfTheAlphabet) {
  const auto codec = codec_for(Source::arithmetic);
  EXPECT_EQ(codec->vocab(), 16);
  EXPECT_TRUE(codec->is_text());
  std::vector<int64_t> all(16);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(codec->decode(all), "0123456789+-*=\n_");
  EXPECT_EQ(codec->encode("0123456789+-*=\n_"), all);
  EXPECT_EQ(codec->decode(std::vector<int64_t>{kArithmeticPad}), "_");
  EXPECT_EQ(codec->encode(""), std::vector<int64_t>{});
}

TEST(ArithmeticCodec, ABadCharacterIsNamedWithItsPlace) {
  const auto codec = codec_for(Source::arithmetic);
  const std::string expected = "expected only the characters 0-9 + - * = _ and newline, got ";
  EXPECT_EQ(error_of<UsageError>([&] { codec->encode("12x3="); }), expected + "'x' at character 3 of the text");
  EXPECT_EQ(error_of<UsageError>([&] { codec->encode(" 1"); }), expected + "byte 0x20 at character 1 of the text");
  EXPECT_EQ(error_of<UsageError>([&] {
              codec->encode(
                  "3\xC3\x97"
                  "4");
            }),
            expected + "byte 0xc3 at character 2 of the text");
}

TEST(ByteCodec, EveryByteIsItsOwnId) {
  const auto codec = codec_for(Source::text);
  EXPECT_EQ(codec->vocab(), 256);
  EXPECT_TRUE(codec->is_text());
  std::vector<int64_t> all(256);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(codec->encode(codec->decode(all)), all);
  EXPECT_EQ(codec->encode("aé"), (std::vector<int64_t>{0x61, 0xC3, 0xA9}));
}

TEST(Codec, AnIdWithoutACharacterIsShownAsOne) {
  EXPECT_EQ(codec_for(Source::arithmetic)->decode(std::vector<int64_t>{1, 16, 2}), "1\uFFFD2");
  EXPECT_EQ(codec_for(Source::arithmetic)->decode(std::vector<int64_t>{-1}), "\uFFFD");
  EXPECT_EQ(codec_for(Source::text)->decode(std::vector<int64_t>{97, 256, 98}),
            "a\uFFFD"
            "b");
}

TEST(TokenIdCodec, ReadsAndWritesNumbers) {
  const auto codec = codec_for(Source::tokens);
  EXPECT_EQ(codec->vocab(), 0);
  EXPECT_FALSE(codec->is_text());
  const std::vector<int64_t> ids = {15496, 995, 0};
  EXPECT_EQ(codec->decode(ids), "15496 995 0");
  EXPECT_EQ(codec->encode("15496 995 0"), ids);
  EXPECT_EQ(codec->encode(" 15496,\t995\n0, "), ids);
  EXPECT_EQ(codec->encode(" "), std::vector<int64_t>{});
}

TEST(TokenIdCodec, AWordThatIsNoIdIsNamed) {
  const auto codec = codec_for(Source::tokens);
  for (const char* word : {"Hello", "-1", "1.5", "12a", "99999999999999999999"}) {
    EXPECT_EQ(error_of<UsageError>([&] { codec->encode(std::string("5 6 ") + word + " 7"); }),
              std::string("expected token ids (whole numbers >= 0), got '") + word + "' as word 3");
  }
}

}  // namespace
}  // namespace siamese::data

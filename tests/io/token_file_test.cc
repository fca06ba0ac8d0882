#include "siamese/io/token_file.h"

#include <algorithm>
#include <numeric>

#include "tests/io/megatron_sample.h"
#include "tests/io/support.h"

namespace siamese::io {
namespace {

class TokenFileTest : public InFolder {
 protected:
  // Opens a file of this content and returns all its tokens.
  std::vector<int64_t> tokens(const std::string& name, const std::string& content, TokenFormat format, int64_t vocab) {
    const TokenFile file = TokenFile::open(put(name, content), format, vocab);
    found_ = file.format();
    std::vector<int64_t> out(static_cast<size_t>(file.size()));
    file.read(0, out);
    return out;
  }

  void refuses(const std::string& name, const std::string& content, TokenFormat format, int64_t vocab,
               std::vector<std::string> parts) {
    const auto path = put(name, content);
    parts.push_back(path.string());
    expect_error<DataError>([&] { TokenFile::open(path, format, vocab); }, parts);
  }

  TokenFormat found_ = TokenFormat::auto_;
};

std::string llmc(int32_t magic, int32_t version, int32_t count, const std::string& body) {
  std::string header(1024, '\0');
  const int32_t fields[] = {magic, version, count};
  std::memcpy(header.data(), fields, sizeof fields);
  return header + body;
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data) {
  const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

using Tokens = std::vector<int64_t>;

TEST_F(TokenFileTest, ReadsEveryFormatAndFindsIt) {
  const std::string u16 = raw<uint16_t>({0, 7, 50256});
  const std::string u32 = raw<uint32_t>({0, 7, 128000});
  const Tokens small{0, 7, 50256}, large{0, 7, 128000};
  struct Case {
    std::string name, content;
    int64_t vocab;
    TokenFormat format;
    Tokens expected;
  };
  const Case cases[] = {
      {"a.bin", u16, 50257, TokenFormat::nanogpt_bin, small},
      {"b.bin", llmc(20240520, 1, 3, u16), 50257, TokenFormat::llmc_bin, small},
      {"c.bin", llmc(20240801, 7, 3, u32), 128256, TokenFormat::llmc_bin, large},
      {"d.npy", u16, 65536, TokenFormat::olmo_npy_u16, small},
      {"e.npy", u32, 128256, TokenFormat::olmo_npy_u32, large},
      {"f.npy", npy("<u2", "(3,)", u16), 50257, TokenFormat::npy, small},
      {"g.npy", npy("<u4", "(3,)", u32), 128256, TokenFormat::npy, large},
      {"h.npy", npy("<i4", "(3,)", u32), 128256, TokenFormat::npy, large},
      {"i.npy", npy("<i8", "(2,)", raw<int64_t>({5, 99999})), 100000, TokenFormat::npy, {5, 99999}},
      {"j.npy", npy("<u8", "(2,)", raw<uint64_t>({5, 99999})), 100000, TokenFormat::npy, {5, 99999}},
      {"k.npy", npy("|u1", "(2,)", raw<uint8_t>({5, 255})), 256, TokenFormat::npy, {5, 255}},
      {"l.npy", npy("|i1", "(2,)", raw<int8_t>({5, 127})), 300, TokenFormat::npy, {5, 127}},
      {"m.npy", npy("<i2", "(2,)", raw<int16_t>({5, 32767})), 40000, TokenFormat::npy, {5, 32767}},
      {"n.tokens", npy("<u2", "(3,)", u16), 50257, TokenFormat::npy, small},
  };
  for (const Case& good : cases) {
    EXPECT_EQ(tokens(good.name, good.content, TokenFormat::auto_, good.vocab), good.expected) << good.name;
    EXPECT_EQ(found_, good.format) << good.name;
    EXPECT_EQ(tokens(good.name, good.content, good.format, good.vocab), good.expected) << good.name;
  }
}

TEST_F(TokenFileTest, ReadsAnyWindow) {
  std::string content(2000, '\0');
  for (uint16_t i = 0; i < 1000; ++i) std::memcpy(content.data() + 2 * i, &i, 2);
  const TokenFile file = TokenFile::open(put("a.bin", content), TokenFormat::auto_, 1000);
  EXPECT_EQ(file.size(), 1000);
  for (const auto& [begin, count] : {std::pair{0, 1}, {999, 1}, {1000, 0}, {17, 33}, {0, 1000}}) {
    Tokens out(static_cast<size_t>(count)), expected(out.size());
    std::iota(expected.begin(), expected.end(), begin);
    file.read(begin, out);
    EXPECT_EQ(out, expected);
  }
}

TEST_F(TokenFileTest, AWindowPastTheEndIsABug) {
  const TokenFile file = TokenFile::open(put("a.bin", raw<uint16_t>({1, 2})), TokenFormat::auto_, 3);
  Tokens out(2);
  EXPECT_DEATH(file.read(1, out), "begin");
  EXPECT_DEATH(file.read(-1, out), "begin");
}

TEST_F(TokenFileTest, RefusesBadFiles) {
  const std::string u16 = raw<uint16_t>({1, 2, 3});
  using F = TokenFormat;
  refuses("a.bin", "", F::auto_, 10, {"empty file"});
  refuses("a.npy", "", F::npy, 10, {"empty file"});
  refuses("a.bin", u16 + "x", F::auto_, 10, {"multiple of 2 bytes", "got 7"});
  refuses("a.npy", u16, F::auto_, 70000, {"multiple of 4 bytes", "got 6"});
  refuses("a.bin", u16, F::llmc_bin, 10, {"expected 1024 bytes, got 6"});
  refuses("a.bin", llmc(20240520, 1, 3, u16).substr(0, 1000), F::auto_, 10, {"expected 1024 bytes, got 1000"});
  refuses("a.bin", llmc(7, 1, 3, u16), F::llmc_bin, 10, {"magic at byte 0", "20240520 or 20240801, got 7"});
  refuses("a.bin", llmc(20240520, 7, 3, u16), F::auto_, 10, {"version at byte 4: expected 1, got 7"});
  refuses("a.bin", llmc(20240801, 1, 3, u16), F::auto_, 10, {"version at byte 4: expected 7, got 1"});
  refuses("a.bin", llmc(20240520, 1, 4, u16), F::auto_, 10, {"counts 4 U16 tokens, but 6 bytes"});
  refuses("a.bin", llmc(20240520, 1, 2, u16), F::auto_, 10, {"counts 2 U16 tokens, but 6 bytes"});
  refuses("a.bin", llmc(20240520, 1, 3, u16 + "x"), F::auto_, 10, {"counts 3 U16 tokens, but 7 bytes"});
  refuses("a.bin", llmc(20240520, 1, -1, u16), F::auto_, 10, {"counts -1"});
  refuses("a.bin", llmc(20240520, 1, 0, ""), F::auto_, 10, {"got a header and none"});
  refuses("a.bin", llmc(20240520, 1, 3, u16), F::nanogpt_bin, 65536, {"use the format llmc_bin"});
  refuses("a.npy", npy("<u2", "(3,)", u16), F::olmo_npy_u16, 65536, {"use the format npy"});
  refuses("a.npy", u16, F::npy, 10, {"no magic"});
  refuses("a.npy", npy("<u2", "(3,)", u16).substr(0, 70), F::auto_, 10, {"bytes of data"});
  refuses("a.npy", npy("<u2", "(0,)", ""), F::auto_, 10, {"got a header and none"});
  refuses("a.npy", npy("<u2", "(3, 1)", u16), F::auto_, 10, {"one dimension of integer tokens, got U16 [3, 1]"});
  refuses("a.npy", npy("<f4", "(1,)", raw<float>({1})), F::auto_, 10, {"integer tokens, got F32"});
  expect_error<DataError>([&] { TokenFile::open(folder_ / "none.bin", F::auto_, 10); }, {"none.bin", "No such file"});
}

TEST_F(TokenFileTest, AnUnknownExtensionGetsAHint) {
  refuses("a.bim", "xx", TokenFormat::auto_, 10, {"got '.bim' (did you mean '.bin'?)", "nanogpt_bin, llmc_bin"});
  refuses("a", "xx", TokenFormat::auto_, 10, {".bin or .npy, got ''"});
  EXPECT_EQ(tokens("a.u16", raw<uint16_t>({1}), TokenFormat::nanogpt_bin, 10), Tokens{1});
}

TEST_F(TokenFileTest, FindsTheFirstTokenOutsideTheVocabulary) {
  using F = TokenFormat;
  refuses("a.bin", raw<uint16_t>({9, 10, 11}), F::auto_, 10, {"token 10 at byte 2", "vocabulary of 10"});
  refuses("a.npy", raw<uint32_t>({9, 70000}), F::auto_, 70000, {"token 70000 at byte 4", "vocabulary of 70000", "U32"});
  refuses("a.bin", llmc(20240520, 1, 2, raw<uint16_t>({9, 65535})), F::auto_, 65535, {"token 65535 at byte 1026"});
  refuses("a.npy", npy("<i4", "(2,)", raw<int32_t>({9, -1})), F::auto_, int64_t{1} << 40, {"token -1 at byte"});
  refuses("a.npy", npy("|i1", "(2,)", raw<int8_t>({9, -128})), F::auto_, 1000, {"token -128 at byte"});
  refuses("a.npy", npy("<i8", "(1,)", raw<int64_t>({INT64_MIN})), F::auto_, INT64_MAX, {"token -9223372036854775808"});
  refuses("a.npy", npy("<u8", "(1,)", raw<uint64_t>({UINT64_MAX})), F::auto_, INT64_MAX,
          {"token 18446744073709551615"});
  refuses("a.npy", npy("|u1", "(1,)", raw<uint8_t>({255})), F::auto_, 255, {"token 255 at byte"});
}

TEST_F(TokenFileTest, EveryPlaceIsChecked) {
  constexpr size_t kTokens = 16384 * 2 + 37;  // what opening looks at, and a part between
  for (const size_t at : {size_t{0}, size_t{1}, size_t{16383}, size_t{16384}, size_t{32768}, kTokens - 1}) {
    std::string content(kTokens * 2, '\0');
    const uint16_t wrong = 300;
    std::memcpy(content.data() + 2 * at, &wrong, 2);
    const auto path = put("a.bin", content);
    const auto read_all = [&] {
      const TokenFile file = TokenFile::open(path, TokenFormat::auto_, 300);
      std::vector<int64_t> out(kTokens);
      file.read(0, out);
    };
    expect_error<DataError>(read_all, {path.string(), "token 300 at byte " + std::to_string(2 * at) + " "});
    EXPECT_NO_THROW(TokenFile::open(put("a.bin", content), TokenFormat::auto_, 301));
  }
}

// Opening looks at the ends only; what lies between, or was written later, is found when it is read.
TEST_F(TokenFileTest, ATokenWrittenLaterIsFoundWhenItIsRead) {
  const auto path = put("a.bin", std::string(200'000, '\0'));
  const TokenFile file = TokenFile::open(path, TokenFormat::auto_, 300);
  std::vector<int64_t> out(100);
  EXPECT_NO_THROW(file.read(50, out));
  const uint16_t wrong = 300;
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(2 * 120)
      .write(reinterpret_cast<const char*>(&wrong), sizeof wrong);
  EXPECT_NO_THROW(file.read(20, out));
  for (const int64_t begin : {21, 50, 120}) {
    expect_error<DataError>([&] { file.read(begin, out); },
                            {path.string() + ": token 300 at byte 240 is outside the vocabulary of 300"});
  }
  EXPECT_NO_THROW(file.read(121, out));
}

TEST_F(TokenFileTest, MegatronByItsIndex) {
  put("a.idx", megatron_index(8, {2, 1}, 2));
  EXPECT_EQ(tokens("a.bin", raw<uint16_t>({5, 6, 7}), TokenFormat::auto_, 100), (std::vector<int64_t>{5, 6, 7}));
  EXPECT_EQ(found_, TokenFormat::megatron);
  put("a.idx", megatron_index(4, {1, 0, 2}, 4));
  EXPECT_EQ(tokens("a.bin", raw<int32_t>({5, 60000, 7}), TokenFormat::megatron, 70000),
            (std::vector<int64_t>{5, 60000, 7}));
  put("b.idx", "something else");
  EXPECT_EQ(tokens("b.bin", raw<uint16_t>({5}), TokenFormat::auto_, 100), std::vector<int64_t>{5});
  EXPECT_EQ(found_, TokenFormat::nanogpt_bin);
}

TEST_F(TokenFileTest, MegatronIndexesThatAreWrong) {
  const std::string body = raw<uint16_t>({5, 6, 7});
  const auto refuses_index = [&](std::string index, const std::string& part) {
    const auto path = put("a.bin", body);
    put("a.idx", index);
    expect_error<DataError>([&] { TokenFile::open(path, TokenFormat::megatron, 100); }, {"a.", part});
  };
  refuses_index("", "expected a Megatron index");
  refuses_index(megatron_index(8, {2, 2}, 2), "counts 4 U16 tokens, but it has 6 bytes");
  refuses_index(megatron_index(7, {2, 1}, 2), "type of tokens");
  refuses_index(megatron_index(8, {2, 1}, 4), "sequence 1 of length 1 begins at byte 8: expected 4");
  refuses_index(megatron_index(8, {-1, 4}, 2), "sequence 0 of length -1");
  refuses_index(megatron_index(8, {2, 1}, 2) + "x", "counts 2 sequences");
  std::string many = megatron_index(8, {2, 1}, 2);
  many[25] = '\x7F';
  refuses_index(many, "sequences");
  std::string version = megatron_index(8, {2, 1}, 2);
  version[9] = 2;
  refuses_index(version, "version at byte 9: expected 1, got 2");
  std::filesystem::remove(folder_ / "a.idx");
  expect_error<DataError>([&] { TokenFile::open(folder_ / "a.bin", TokenFormat::megatron, 100); }, {"a.idx"});
}

TEST(TokenFormatText, RoundTrips) {
  for (const auto& name : enum_choices<TokenFormat>()) EXPECT_EQ(enum_text(*enum_from_text<TokenFormat>(name)), name);
  EXPECT_EQ(enum_from_text<TokenFormat>("auto"), TokenFormat::auto_);
}

}  // namespace
}  // namespace siamese::io

#include "siamese/data/tokens.h"

#include <cstring>
#include <set>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/batches.h"

namespace siamese::data {
namespace {

constexpr int64_t kTokensContext = 4;

template <class Stored>
std::string raw(const std::vector<int64_t>& tokens) {
  std::string bytes;
  for (const int64_t token : tokens) {
    const auto stored = static_cast<Stored>(token);
    bytes.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  }
  return bytes;
}

std::string llmc(const std::vector<int64_t>& tokens) {
  std::vector<int64_t> header(256, 0);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = std::ssize(tokens);
  return raw<int32_t>(header) + raw<uint16_t>(tokens);
}

std::vector<int64_t> counting(int64_t first, int64_t count) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

DataConfig tokens_config(std::vector<std::string> train) {
  DataConfig config;
  config.source = Source::tokens;
  config.train = std::move(train);
  config.val_fraction = 0;
  return config;
}

std::unique_ptr<Dataset> open_tokens(const DataConfig& config, Split split = Split::train, int64_t vocab = 1000) {
  return open_dataset(config, split, kTokensContext, vocab, 1);
}

TEST(Tokens, ShardsOfDifferentLayoutsMakeOneEpochOfWindows) {
  const TempFolder folder;
  DataConfig config = tokens_config({folder.write("a.bin", raw<uint16_t>(counting(0, 42))),  // 10 windows, 1 left over
                                     folder.write("b.bin", llmc(counting(100, 21)))});       // 5 windows
  const auto dataset = open_tokens(config);
  EXPECT_EQ(dataset->samples(), 15);
  EXPECT_EQ(dataset->vocab(), 1000);
  EXPECT_EQ(dataset->describe(), "tokens train: 2 files, 63 tokens, 15 windows of 4, shuffled each epoch");
  std::set<int64_t> starts;
  for (uint64_t i = 0; i < 15; ++i) {
    const Sample sample = sample_at(*dataset, 15 + i, kTokensContext);
    EXPECT_EQ(sample.tokens, counting(sample.tokens[0], kTokensContext + 1));  // no window crosses a file
    EXPECT_EQ(sample.weights, std::vector<float>(kTokensContext, 1.0F));
    starts.insert(sample.tokens[0]);
  }
  EXPECT_EQ(starts, (std::set<int64_t>{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 100, 104, 108, 112, 116}));
}

TEST(Tokens, TheFormatCanBeNamed) {
  const TempFolder folder;
  DataConfig config = tokens_config({folder.write("a.data", raw<uint32_t>(counting(70000, 9)))});
  config.format = io::TokenFormat::olmo_npy_u32;
  config.val_fraction = 0.5;
  EXPECT_EQ(sample_at(*open_tokens(config, Split::train, 80000), 0, kTokensContext).tokens, counting(70000, 5));
  config.val = {folder.write("val.data", raw<uint32_t>(counting(5, 9)))};
  EXPECT_EQ(sample_at(*open_tokens(config, Split::test, 80000), 1, kTokensContext).tokens, counting(9, 5));
}

TEST(Tokens, ATokenPastTheVocabularyIsNamed) {
  const TempFolder folder;
  const auto path = folder.write("a.bin", raw<uint16_t>({1, 2, 3, 1000, 5, 6, 7, 8}));
  const std::string error = error_of<DataError>([&] { open_tokens(tokens_config({path})); });
  EXPECT_EQ(error.find(path), 0U) << error;
  EXPECT_NE(error.find("1000"), std::string::npos) << error;
  EXPECT_NO_THROW(open_tokens(tokens_config({path}), Split::train, 1001));
}

TEST(Tokens, ATokenThatIsWrittenLaterIsNamed) {
  const TempFolder folder;
  const auto path = folder.write("a.bin", raw<uint16_t>(counting(0, 41)));
  const auto batches = token_batches(open_tokens(tokens_config({path})), kTokensContext);
  EXPECT_EQ(std::ssize(batches->batch(0, 10).tokens), 50);
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(2 * 17).write("\xE8\x03", 2);
  EXPECT_EQ(error_of<DataError>([&] { batches->batch(0, 10); }),
            path + ": token 1000 at byte 34 is outside the vocabulary of 1000 (read as U16, format nanogpt_bin)");
}

TEST(Tokens, HostileShardsAreNamed) {
  const TempFolder folder;
  const std::string whole = llmc(counting(0, 50));
  const std::vector<std::string> broken = {
      folder.write("cut_body.bin", whole.substr(0, whole.size() - 2)),
      folder.write("cut_header.bin", whole.substr(0, 600)),
      folder.write("odd.bin", "abc"),
      folder.write("empty.bin", ""),
  };
  for (const auto& path : broken) {
    const std::string error = error_of<DataError>([&] { open_tokens(tokens_config({path})); });
    EXPECT_NE(error.find(path), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  const auto brief = folder.write("brief.bin", raw<uint16_t>({1, 2, 3, 4}));
  EXPECT_EQ(error_of<DataError>([&] { open_tokens(tokens_config({brief})); }),
            brief + ": too short for one window: expected at least 5 tokens (model.context 4 + 1), got 4");
}

}  // namespace
}  // namespace siamese::data

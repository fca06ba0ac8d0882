#include "siamese/data/document_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/batches.h"
#include "siamese/data/bytes_per_token.h"
#include "siamese/data/prepare.h"
#include "siamese/io/atomic_file.h"
#include "siamese/text/train.h"

namespace siamese::data {
namespace {

class DocumentIndexTest : public ::testing::Test {
 protected:
  DocumentIndexTest() {
    text::BpeTrainer trainer({.vocab = 300});
    trainer.add("some words of some documents");
    folder_.write("t/tokenizer.json", trainer.finish());
    std::string lines;
    for (int i = 0; i < 200; ++i) lines += R"({"text": ")" + std::string(static_cast<size_t>(1 + i % 9), 'x') + "\"}\n";
    folder_.write("in.jsonl", lines);
    PrepareOptions options;
    options.inputs = {folder_ / "in.jsonl"};
    options.tokenizer = folder_ / "t";
    options.out = folder_ / "p";
    options.val_fraction = 0;
    PrepareObserver quiet;
    manifest_ = prepare(options, quiet);
    config_.source = Source::tokens;
    config_.train = {folder_ / "p/train"};
    config_.pack = Pack::documents;
    config_.val_fraction = 0.2;
  }

  static constexpr int64_t kEnd = 0;  // <|endoftext|> has the first id
  TempFolder folder_;
  DataConfig config_;
  Manifest manifest_;
  SampleShape shape_{.context = 16, .vocab = 300};
};

// A document ends with the end-of-text token: what follows one begins another.
TEST_F(DocumentIndexTest, BordersStandBehindEveryEnd) {
  for (const Split split : {Split::train, Split::test}) {
    const auto batches = open_batches(config_, split, shape_, 3);
    const Batch batch = batches->batch(0, batches->samples());
    ASSERT_EQ(static_cast<int64_t>(batch.borders.size()), batch.rows);
    int64_t borders = 0;
    for (int64_t row = 0; row < batch.rows; ++row) {
      std::vector<int64_t> expected;
      for (int64_t i = 0; i < 16; ++i) {
        const bool ends = batch.tokens[static_cast<size_t>(row * 17 + i)] == kEnd;
        if (ends) expected.push_back(i + 1);
        EXPECT_EQ(batch.weights[static_cast<size_t>(row * 16 + i)], ends ? 0.0F : 1.0F);
      }
      EXPECT_EQ(batch.borders[static_cast<size_t>(row)], expected) << row;
      borders += static_cast<int64_t>(expected.size());
    }
    EXPECT_GT(borders, 5);
  }
  config_.pack = Pack::stream;
  const Batch stream = open_batches(config_, Split::train, shape_, 3)->batch(0, 4);
  EXPECT_TRUE(stream.borders.empty());
  EXPECT_EQ(std::count(stream.weights.begin(), stream.weights.end(), 1.0F), 64);
}

TEST_F(DocumentIndexTest, BytesOfATokenAreThoseOfTheManifest) {
  const SideCounts& train = manifest_.sides[0];
  EXPECT_DOUBLE_EQ(bytes_per_token(config_), static_cast<double>(train.bytes) / static_cast<double>(train.tokens));
  folder_.write("bare/x.npy", io::read_file(folder_ / "p/train/00000.npy"));
  config_.train = {folder_ / "bare"};
  EXPECT_TRUE(std::isnan(bytes_per_token(config_)));
}

TEST_F(DocumentIndexTest, AMissingOrWrongIndexIsNamed) {
  const std::string index = folder_ / "p/documents/train/00000.npy";
  std::string bytes = io::read_file(index);
  const auto said = [&] { return error_of<DataError>([&] { open_batches(config_, Split::train, shape_, 3); }); };
  uint64_t end = 0;
  std::memcpy(&end, bytes.data() + bytes.size() - 8, 8);
  ++end;
  std::memcpy(bytes.data() + bytes.size() - 8, &end, 8);
  folder_.write("p/documents/train/00000.npy", bytes);
  EXPECT_NE(said().find("00000.npy: expected documents from token 0 to"), std::string::npos) << said();
  std::filesystem::remove(index);
  EXPECT_NE(said().find("data.pack: "), std::string::npos) << said();
  EXPECT_NE(said().find("as `siamese prepare` writes it, got nothing"), std::string::npos) << said();
}

TEST_F(DocumentIndexTest, AnIndexOutOfOrderIsNamed) {
  std::string bytes = io::read_file(folder_ / "p/documents/train/00000.npy");
  const uint64_t zero = 0;
  std::memcpy(bytes.data() + bytes.size() - 8 * 100, &zero, 8);
  folder_.write("p/documents/train/00000.npy", bytes);
  EXPECT_NE(error_of<DataError>([&] {
              const auto batches = open_batches(config_, Split::train, shape_, 3);
              batches->batch(0, batches->samples());
            }).find("is not past the one before it"),
            std::string::npos);
}

}  // namespace
}  // namespace siamese::data

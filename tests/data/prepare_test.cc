#include "siamese/data/prepare.h"

#include <map>

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/io/atomic_file.h"
#include "siamese/io/npy.h"
#include "siamese/text/train.h"

namespace siamese::data {
namespace {

namespace fs = std::filesystem;

class PrepareTest : public testing::Test {
 protected:
  PrepareTest() {
    text::BpeTrainer trainer({.vocab = 300});
    trainer.add("document number one two three and a few words more, words more");
    folder_.write("t/tokenizer.json", trainer.finish());
    std::string lines;
    for (int i = 0; i < kDocuments; ++i) lines += R"({"text": "document number )" + std::to_string(i) + " words\"}\n";
    folder_.write("in/a.jsonl", lines);
    folder_.write("in/b.txt", "a text\nof two lines\n");
    options_.inputs = {folder_ / "in"};
    options_.tokenizer = folder_ / "t";
    options_.out = folder_ / "out";
    options_.val_fraction = 0.2;
    options_.shard_tokens = 500;
  }

  // Every file below `out`, by its name.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(options_.out)) {
      if (entry.is_regular_file()) {
        all[fs::relative(entry.path(), options_.out).string()] = io::read_file(entry.path());
      }
    }
    return all;
  }

  // The documents of a side as text, shard by shard.
  std::vector<std::string> documents(const std::string& side) const {
    const auto tokenizer = text::Tokenizer::open(options_.tokenizer);
    std::vector<std::string> all;
    for (int shard = 0; fs::exists(options_.out / side / name(shard)); ++shard) {
      const auto tokens = io::NpyFile::open(options_.out / side / name(shard));
      const auto index = io::NpyFile::open(options_.out / "documents" / side / name(shard));
      std::vector<uint16_t> ids(static_cast<size_t>(tokens.view().shape[0]));
      std::memcpy(ids.data(), tokens.view().data.data(), tokens.view().data.size());
      std::vector<uint64_t> begins(static_cast<size_t>(index.view().shape[0]));
      std::memcpy(begins.data(), index.view().data.data(), index.view().data.size());
      EXPECT_EQ(begins.front(), 0U);
      EXPECT_EQ(begins.back(), ids.size());
      for (size_t i = 0; i + 1 < begins.size(); ++i) {
        std::vector<text::TokenId> document(ids.begin() + static_cast<std::ptrdiff_t>(begins[i]),
                                            ids.begin() + static_cast<std::ptrdiff_t>(begins[i + 1]));
        EXPECT_EQ(document.back(), *tokenizer.id_of("<|endoftext|>"));
        document.pop_back();
        all.push_back(tokenizer.decode(document));
      }
    }
    return all;
  }

  static std::string name(int shard) { return "0000" + std::to_string(shard) + ".npy"; }

  static constexpr int kDocuments = 200;
  TempFolder folder_;
  PrepareOptions options_;
  PrepareObserver quiet_;
};

TEST_F(PrepareTest, EveryDocumentOnceInItsOrder) {
  const Manifest manifest = prepare(options_, quiet_);
  ASSERT_TRUE(manifest.complete);
  const auto train = documents("train");
  const auto val = documents("val");
  EXPECT_EQ(train.size() + val.size(), kDocuments + 1U);
  EXPECT_EQ(manifest.sides[0].documents, train.size());
  EXPECT_EQ(manifest.sides[1].documents, val.size());
  EXPECT_GT(val.size(), 20U);
  EXPECT_LT(val.size(), 65U);
  EXPECT_GT(manifest.sides[0].shards.size(), 2U);
  EXPECT_EQ(manifest.vocab, text::Tokenizer::open(options_.tokenizer).size());
  // In the order of the files: numbers ascend on each side.
  for (const auto& side : {train, val}) {
    int before = -1;
    for (const std::string& text : side) {
      if (!text.starts_with("document")) continue;
      const int number = std::stoi(text.substr(16));
      EXPECT_GT(number, before);
      before = number;
    }
  }
  uint64_t bytes = 0;
  for (const auto& side : {train, val}) {
    for (const std::string& text : side) bytes += text.size();
  }
  EXPECT_EQ(manifest.sides[0].bytes + manifest.sides[1].bytes, bytes);
}

TEST_F(PrepareTest, TheSameBytesAtAnyNumberOfThreads) {
  prepare(options_, quiet_);
  const auto one = files();
  fs::remove_all(options_.out);
  options_.threads = 3;
  prepare(options_, quiet_);
  EXPECT_EQ(files(), one);
}

// Stopped after every batch.
TEST_F(PrepareTest, GoesOnToTheSameBytes) {
  prepare(options_, quiet_);
  const auto whole = files();
  fs::remove_all(options_.out);
  struct Stopper : PrepareObserver {
    bool stop() override { return true; }
  } stopper;
  options_.batch_bytes = 1000;
  int calls = 0;
  while (!prepare(options_, stopper).complete && calls < 100) ++calls;
  EXPECT_GE(calls, 5);
  EXPECT_LT(calls, 100);
  EXPECT_EQ(files(), whole);
  // What is complete stays as it is.
  prepare(options_, stopper);
  EXPECT_EQ(files(), whole);
}

// A kill between two notes: what was written after the last one is written again.
TEST_F(PrepareTest, GoesOnFromAnOlderNote) {
  struct Stopper : PrepareObserver {
    bool stop() override { return true; }
  } stopper;
  options_.batch_bytes = 1000;
  prepare(options_, stopper);
  const std::string early = io::read_file(options_.out / "manifest.json");
  prepare(options_, quiet_);
  const auto whole = files();
  io::write_file_atomic(options_.out / "manifest.json", early);
  prepare(options_, quiet_);
  EXPECT_EQ(files(), whole);
}

// A corpus of small files has no batch in the middle of one.
TEST_F(PrepareTest, StopsBetweenFiles) {
  struct Stopper : PrepareObserver {
    bool stop() override { return true; }
  } stopper;
  const Manifest manifest = prepare(options_, stopper);
  EXPECT_FALSE(manifest.complete);
  EXPECT_EQ(manifest.source, 1U);
  EXPECT_EQ(read_manifest(options_.out / "manifest.json").source, 1U);
  EXPECT_TRUE(prepare(options_, stopper).complete);  // of the last file nothing is left
}

TEST_F(PrepareTest, AKillBeforeTheFirstNoteStoodCostsNothing) {
  prepare(options_, quiet_);
  const auto whole = files();
  fs::remove_all(options_.out);
  fs::create_directories(options_.out);
  const fs::path half = io::aside_name(options_.out / "manifest.json", io::Aside::writing);
  io::write_file_atomic(half, "{");
  prepare(options_, quiet_);
  EXPECT_EQ(files(), whole);
}

TEST_F(PrepareTest, BadLinesAreCountedAndNamed) {
  const auto file = folder_.write("in/a.jsonl", "{\"text\": \"good\"}\nbad\n{\"text\": \"\"}\n{\"text\": \"\xC3\"}\n");
  const Manifest manifest = prepare(options_, quiet_);
  EXPECT_EQ(manifest.bad_count, 2U);
  EXPECT_EQ(manifest.empty, 1U);
  ASSERT_EQ(manifest.bad.size(), 2U);
  EXPECT_EQ(manifest.bad[0].file, file);
  EXPECT_EQ(manifest.bad[0].line, 2U);
  EXPECT_EQ(manifest.bad[1].line, 4U);
  EXPECT_EQ(read_manifest(options_.out / "manifest.json").bad[1].why, manifest.bad[1].why);
  options_.strict = true;
  options_.out = folder_ / "strict";
  EXPECT_EQ(error_of<DataError>([&] { prepare(options_, quiet_); }),
            file + ": line 2: the line: not valid JSON: 'bad'");
}

TEST_F(PrepareTest, AnotherRequestIsRefused) {
  prepare(options_, quiet_);
  options_.val_fraction = 0.3;
  EXPECT_NE(error_of<UsageError>([&] { prepare(options_, quiet_); }).find("other options"), std::string::npos);
  options_.val_fraction = 0.2;
  folder_.write("in/b.txt", "changed");
  EXPECT_NE(error_of<UsageError>([&] { prepare(options_, quiet_); }).find("other files"), std::string::npos);
  options_.out = folder_ / "in";
  EXPECT_NE(error_of<UsageError>([&] { prepare(options_, quiet_); }).find("'a.jsonl' and no manifest"),
            std::string::npos);
}

TEST_F(PrepareTest, EqualDocumentsAreOnOneSide) {
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "{\"text\": \"the same\"}\n";
  folder_.write("in/a.jsonl", lines);
  options_.val_fraction = 0.5;
  const Manifest manifest = prepare(options_, quiet_);
  EXPECT_TRUE(manifest.sides[0].documents >= 50 || manifest.sides[1].documents >= 50);
}

TEST_F(PrepareTest, EndOfText) {
  const auto tokenizer = text::Tokenizer::open(options_.tokenizer);
  const fs::path file = folder_ / "t/tokenizer.json";
  EXPECT_EQ(end_of_text(tokenizer, file, ""), 0U);
  EXPECT_EQ(end_of_text(tokenizer, file, "a"), *tokenizer.id_of("a"));
  EXPECT_NE(error_of<UsageError>([&] { end_of_text(tokenizer, file, "<x>"); }).find("'<x>' is no token"),
            std::string::npos);
  folder_.write("t/tokenizer_config.json", R"({"eos_token": {"content": "b"}})");
  EXPECT_EQ(end_of_text(tokenizer, file, ""), *tokenizer.id_of("b"));
}

}  // namespace
}  // namespace siamese::data

#include "siamese/data/text.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/data/support.h"
#include <gtest/gtest.h>

namespace siamese::data {
namespace {

constexpr int64_t kTextContext = 10;

// `count` bytes that say where they are: letter, then a running number.
std::string numbered(char letter, size_t count) {
  std::string text;
  for (int i = 0; text.size() < count; ++i) text += letter + std::to_string(i) + " ";
  return text.substr(0, count);
}

DataConfig text_config(std::vector<std::string> train, std::vector<std::string> val = {}) {
  DataConfig config;
  config.source = Source::text;
  config.train = std::move(train);
  config.val = std::move(val);
  return config;
}

std::unique_ptr<Dataset> open_text(const DataConfig& config, Split split, uint64_t seed = 1,
                                   int64_t context = kTextContext) {
  return open_dataset(config, split, context, 256, seed);
}

std::string text_at(const Dataset& dataset, uint64_t position) {
  const Sample sample = sample_at(dataset, position, kTextContext);
  EXPECT_EQ(sample.weights, std::vector<float>(kTextContext, 1.0F));
  return byte_codec()->decode(sample.tokens);
}

std::vector<std::string> epoch_of(const Dataset& dataset, uint64_t epoch) {
  std::vector<std::string> texts;
  const auto count = static_cast<uint64_t>(dataset.samples());
  for (uint64_t i = 0; i < count; ++i) texts.push_back(text_at(dataset, epoch * count + i));
  return texts;
}

// The windows of a text as the header defines them, written out by hand.
void add_windows(const std::string& text, std::multiset<std::string>& windows) {
  for (size_t begin = 0; begin + kTextContext + 1 <= text.size(); begin += kTextContext) {
    windows.insert(text.substr(begin, kTextContext + 1));
  }
}

std::multiset<std::string> as_set(const std::vector<std::string>& list) { return {list.begin(), list.end()}; }

TEST(Text, EveryWindowOccursExactlyOncePerEpoch) {
  const TempFolder folder;
  const std::string a = numbered('a', 1001);  // 100 windows
  const std::string b = numbered('b', 310);   // 30 windows, the last bytes left over
  const std::string c = numbered('c', 11);    // one window
  DataConfig config = text_config({folder.write("a", a), folder.write("b", b), folder.write("c", c)});
  config.val_fraction = 0;
  std::multiset<std::string> expected;
  for (const auto& text : {a, b, c}) add_windows(text, expected);
  const auto dataset = open_text(config, Split::train);
  EXPECT_EQ(dataset->samples(), 131);
  EXPECT_EQ(dataset->vocab(), 256);
  const auto first = epoch_of(*dataset, 0);
  const auto second = epoch_of(*dataset, 1);
  EXPECT_EQ(as_set(first), expected);
  EXPECT_EQ(as_set(second), expected);
  EXPECT_NE(first, second);
  EXPECT_NE(first, epoch_of(*open_text(config, Split::train, 2), 0));
  EXPECT_EQ(first, epoch_of(*open_text(config, Split::train, 1), 0));
}

TEST(Text, TheTailOfEachFileIsHeldOut) {
  const TempFolder folder;
  const std::string a = numbered('a', 1000);
  const std::string b = numbered('b', 400);
  DataConfig config = text_config({folder.write("a", a), folder.write("b", b)});
  config.val_fraction = 0.25;
  std::multiset<std::string> train;
  add_windows(a.substr(0, 750), train);
  add_windows(b.substr(0, 300), train);
  std::multiset<std::string> test;
  add_windows(a.substr(750), test);
  add_windows(b.substr(300), test);
  EXPECT_EQ(as_set(epoch_of(*open_text(config, Split::train), 0)), train);
  EXPECT_EQ(as_set(epoch_of(*open_text(config, Split::test), 0)), test);
}

TEST(Text, TheTestSideIsReadInOrderAndWraps) {
  const TempFolder folder;
  const std::string text = numbered('v', 101);
  const auto config = text_config({folder.write("train", numbered('t', 500))}, {folder.write("val", text)});
  const auto dataset = open_text(config, Split::test);
  ASSERT_EQ(dataset->samples(), 10);
  for (uint64_t i = 0; i < 25; ++i)
    EXPECT_EQ(text_at(*dataset, i), text.substr(i % 10 * kTextContext, kTextContext + 1));
}

TEST(Text, WithValidationFilesTheTrainingFilesAreUsedWhole) {
  const TempFolder folder;
  const auto config =
      text_config({folder.write("train", numbered('t', 501))}, {folder.write("val", numbered('v', 101))});
  EXPECT_EQ(open_text(config, Split::train)->samples(), 50);
}

TEST(Text, FilesTooShortForAWindowAreLeftOutAndSaidSo) {
  const TempFolder folder;
  DataConfig config =
      text_config({folder.write("a", "short"), folder.write("b", numbered('b', 101)), folder.write("c", "x")});
  config.val_fraction = 0;
  const auto dataset = open_text(config, Split::train);
  EXPECT_EQ(dataset->samples(), 10);
  EXPECT_EQ(dataset->describe(),
            "text train: 3 files, 107 bytes, 10 windows of 10, shuffled each epoch (2 of 3 files too short for one)");
}

TEST(Text, AFolderOfFilesWorks) {
  const TempFolder folder;
  folder.write("texts/one.txt", numbered('o', 211));
  folder.write("texts/two.md", numbered('w', 211));
  const auto dataset = open_text(text_config({folder / "texts"}), Split::train);
  EXPECT_EQ(dataset->describe(), "text train: 2 files, 402 bytes, 40 windows of 10, shuffled each epoch");
}

TEST(Text, HostileFilesAreNamed) {
  const TempFolder folder;
  const auto error = [&](const DataConfig& config, Split split = Split::train) {
    return error_of<DataError>([&] { open_text(config, split); });
  };
  const auto empty = folder.write("empty", "");
  EXPECT_EQ(error(text_config({empty})), empty + ": expected UTF-8 text, got an empty file");
  const auto latin = folder.write("latin1",
                                  "Gr\xF6\xDF"
                                  "e, and then some more text");
  EXPECT_EQ(error(text_config({latin})), latin + ": expected UTF-8 text, got byte 0xf6 at offset 2");
  const auto fine = folder.write("fine", numbered('f', 500));
  EXPECT_EQ(error(text_config({fine, latin})), latin + ": expected UTF-8 text, got byte 0xf6 at offset 2");
  EXPECT_EQ(error(text_config({fine, folder / "gone"})),
            "data.train: no file, folder or match for '" + (folder / "gone") + "'");
  EXPECT_EQ(error(text_config({fine}, {folder / "gone"})),
            "data.val: no file, folder or match for '" + (folder / "gone") + "'");
}

TEST(Text, TooLittleTextForOneWindowIsNamed) {
  const TempFolder folder;
  const auto small = folder.write("small", "0123456789");
  DataConfig config = text_config({small});
  config.val_fraction = 0;
  EXPECT_EQ(error_of<DataError>([&] { open_text(config, Split::train); }),
            small + ": too short for one window: expected at least 11 bytes (model.context 10 + 1), got 10");
  const auto longer = folder.write("longer", numbered('l', 100));
  EXPECT_EQ(error_of<DataError>([&] { open_text(text_config({longer}), Split::test); }),
            longer +
                ": the held-out tail is too short for one window: expected at least 11 bytes (model.context 10 + 1), "
                "got 5; raise data.val_fraction or give data.val");
}

TEST(Text, AFileOnBothSidesIsRefused) {
  const TempFolder folder;
  const auto file = folder.write("texts/a", numbered('a', 500));
  const auto val = folder / "texts/../texts/a";
  EXPECT_EQ(error_of<UsageError>([&] { open_text(text_config({folder / "texts"}, {val}), Split::train); }),
            "data.val: '" + val + "' is also in data.train");
}

TEST(Text, AskingForATestSideThatWasNotHeldOutIsRefused) {
  const TempFolder folder;
  DataConfig config = text_config({folder.write("a", numbered('a', 500))});
  config.val_fraction = 0;
  EXPECT_EQ(error_of<UsageError>([&] { open_text(config, Split::test); }),
            "data.val: nothing is held out: expected files, or data.val_fraction above 0");
}

TEST(Text, ASmallModelVocabularyIsRefused) {
  const TempFolder folder;
  const auto config = text_config({folder.write("a", numbered('a', 500))});
  EXPECT_EQ(error_of<UsageError>([&] { open_dataset(config, Split::train, 8, 255, 0); }),
            "model.vocab: expected at least 256 for data.source=text, got 255");
}

}  // namespace
}  // namespace siamese::data

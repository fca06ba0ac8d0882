#include "siamese/data/identity.h"

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/io/image.h"
#include "siamese/io/png.h"

namespace siamese::data {
namespace {

namespace identity_test {

DataConfig config_of(Source source, std::vector<std::string> train, std::vector<std::string> val = {}) {
  DataConfig config;
  config.source = source;
  config.train = std::move(train);
  config.val = std::move(val);
  return config;
}

TEST(Identity, WhatIsMadeHasNone) {
  for (const Source source : {Source::arithmetic, Source::random, Source::shapes}) {
    EXPECT_TRUE(identity_of(config_of(source, {})).empty());
  }
}

TEST(Identity, IsTheContentInOrder) {
  const TempFolder folder;
  folder.write("data/a.txt", "one");
  folder.write("data/b.txt", "two");
  const std::string val = folder.write("val.txt", "three");
  const DataConfig config = config_of(Source::text, {folder / "data"}, {val});
  const DataIdentity then = identity_of(config);
  ASSERT_EQ(then.train.size(), 2U);
  EXPECT_EQ(then.train[1].path, folder / "data/b.txt");
  EXPECT_EQ(then.train[1].content.bytes, 3U);
  ASSERT_EQ(then.val.size(), 1U);
  const auto said = [&] { return difference(then, identity_of(config)).value_or("same"); };
  EXPECT_EQ(said(), "same");
  folder.write("data/b.txt", "TWO");
  EXPECT_EQ(said().find((folder / "data/b.txt") + ": expected 3 bytes with the hash "), 0U) << said();
  folder.write("data/b.txt", "two");
  folder.write("data/c.txt", "more");
  EXPECT_EQ(said(), (folder / "data/c.txt") + ": was added (data.train: 2 files then, 3 now)");
  folder.write("data/aa.txt", "two");  // a copy: the order tells
  EXPECT_NE(said(), "same");
  std::filesystem::remove(folder / "data/aa.txt");
  std::filesystem::remove(folder / "data/c.txt");
  std::filesystem::rename(folder / "data/a.txt", folder / "data/z.txt");
  EXPECT_EQ(said().find((folder / "data/b.txt") + ": stands where " + (folder / "data/a.txt") + " stood"), 0U);
  std::filesystem::rename(folder / "data/z.txt", folder / "data/a.txt");
  folder.write("val.txt", "THREE");
  EXPECT_EQ(said().find(val + ": expected 5 bytes"), 0U) << said();
  folder.write("val.txt", "three");
  std::filesystem::remove(folder / "data/b.txt");
  EXPECT_EQ(said(), (folder / "data/b.txt") + ": is missing (data.train: 2 files then, 1 now)");
  // Elsewhere, and the same.
  folder.write("data/b.txt", "two");
  std::filesystem::rename(folder / "data", folder / "moved");
  EXPECT_EQ(difference(then, identity_of(config_of(Source::text, {folder / "moved"}, {val}))), std::nullopt);
}

TEST(Identity, OfIdxAndCifarIsOfTheFilesTheyRead) {
  const TempFolder folder;
  for (const char* const name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                 "t10k-labels.idx1-ubyte", "readme"}) {
    folder.write(name, name);
  }
  const DataIdentity idx = identity_of(config_of(Source::idx, {folder / ""}));
  ASSERT_EQ(idx.train.size() + idx.val.size(), 4U);
  EXPECT_EQ(idx.val[1].path, folder / "t10k-labels.idx1-ubyte");
  for (const char* const name : {"c/data_batch_1.bin", "c/data_batch_2.bin", "c/test_batch.bin", "c/readme.html"}) {
    folder.write(name, name);
  }
  const DataIdentity cifar = identity_of(config_of(Source::cifar, {folder / "c"}));
  EXPECT_EQ(cifar.train.size(), 2U);
  EXPECT_EQ(cifar.val.size(), 1U);
}

TEST(Identity, OfAFolderKnowsTheClasses) {
  const TempFolder folder;
  const auto image = [&](const std::string& name, uint8_t value) {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    io::Image pixels(2, 2, 1);
    pixels.pixels.assign(pixels.pixels.size(), value);
    io::write_png(folder / name, pixels);
  };
  image("set/ant/1.png", 1);
  image("set/ant/2.png", 2);
  image("set/bee/1.png", 3);
  folder.write("set/bee/notes.txt", "no image");
  const DataConfig config = config_of(Source::folder, {folder / "set"});
  const DataIdentity then = identity_of(config);
  EXPECT_EQ(then.train.size(), 3U);
  EXPECT_TRUE(then.val.empty());
  folder.write("set/bee/notes.txt", "still no image");
  EXPECT_EQ(difference(then, identity_of(config)), std::nullopt);
  // The same images in the same order, but one is of another class.
  std::filesystem::rename(folder / "set/ant/2.png", folder / "set/bee/0.png");
  EXPECT_EQ(difference(then, identity_of(config)).value_or("same").find((folder / "set/bee/0.png") + ": expected"), 0U);
}

TEST(Identity, ManyFilesAreOneEntryAFolder) {
  const TempFolder folder;
  for (int i = 0; i < 10'001; ++i) folder.write("data/" + std::to_string(i % 3) + "/" + std::to_string(i), "x");
  const DataConfig config = config_of(Source::text, {folder / "data"});
  const DataIdentity then = identity_of(config);
  ASSERT_EQ(then.train.size(), 3U);
  EXPECT_EQ(then.train[0].path, folder / "data/0");
  EXPECT_EQ(then.train[0].content.bytes, 3334U);
  folder.write("data/1/1", "y");
  EXPECT_EQ(difference(then, identity_of(config)).value_or("same").find((folder / "data/1") + ": expected"), 0U);
}

}  // namespace identity_test
}  // namespace
}  // namespace siamese::data

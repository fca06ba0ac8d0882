#include "siamese/data/files.h"

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/data/batches.h"
#include "siamese/data/identity.h"

namespace siamese::data {
namespace {

using Paths = std::vector<std::filesystem::path>;

TEST(Files, FoldersAndGlobsAreSortedAndFilesKeepTheirPlace) {
  const TempFolder folder;
  const auto b = folder.write("texts/b.txt", "b");
  const auto a = folder.write("texts/a.txt", "a");
  const auto deep = folder.write("texts/sub/c.txt", "c");
  folder.write("texts/.hidden", "x");
  folder.write("texts/.git/config", "x");
  EXPECT_EQ(expand_files("data.train", {folder / "texts"}), (Paths{a, b, deep}));
  EXPECT_EQ(expand_files("data.train", {folder / "texts/*.txt"}), (Paths{a, b}));
  EXPECT_EQ(expand_files("data.train", {b, folder / "texts/a*"}), (Paths{b, a}));
  EXPECT_EQ(expand_files("data.train", {}), Paths{});
}

TEST(Files, AFileWhoseNameLooksLikeAGlobIsThatFile) {
  const TempFolder folder;
  const auto odd = folder.write("a[1].txt", "x");
  folder.write("a1.txt", "x");
  EXPECT_EQ(expand_files("data.train", {odd}), Paths{odd});
}

TEST(Files, WhatMeansNoFileIsNamed) {
  const TempFolder folder;
  folder.write("empty/.hidden", "x");
  for (const char* name : {"missing.txt", "missing/*.txt", "["}) {
    const std::string entry = folder / name;
    EXPECT_EQ(error_of<DataError>([&] { expand_files("data.val", {entry}); }),
              "data.val: no file, folder or match for '" + entry + "'");
  }
  EXPECT_EQ(error_of<DataError>([&] { expand_files("data.val", {folder / "empty"}); }),
            "data.val: no files in folder '" + (folder / "empty") + "'");
}

// A run may be looked at from another folder than it was started in.
TEST(Files, RelativePathsAreLookedForBelowTheBaseFirst) {
  const TempFolder folder;
  const auto there = folder.write("base/texts/a.txt", "a");
  DataConfig config;
  config.base = folder / "base";
  config.train = {"texts/*.txt", "texts", "nowhere.txt", there};
  const auto& train = located(config).train;
  EXPECT_EQ(train[0], config.base + "/texts/*.txt");
  EXPECT_EQ(train[1], config.base + "/texts");
  EXPECT_EQ(train[2], "nowhere.txt");
  EXPECT_EQ(train[3], there);
  EXPECT_EQ(found_below("", "texts"), "texts");
  EXPECT_EQ(found_below(config.base, ""), "");
}

TEST(Files, ErrorsSayWhereItWasLookedFor) {
  const TempFolder folder;
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(error_of<DataError>([&] { expand_files("data.val", {"no.txt"}); }),
            "data.val: no file, folder or match for 'no.txt', looked for in " + here);
  EXPECT_EQ(error_of<DataError>([&] { expand_files("data.val", {"no.txt"}, "/base"); }),
            "data.val: no file, folder or match for 'no.txt', looked for in /base and " + here);
  for (const Source source : {Source::idx, Source::cifar, Source::folder}) {
    DataConfig config;
    config.source = source;
    config.train = {"no"};
    const SampleShape shape{.image = 8, .channels = 1, .classes = 10};
    EXPECT_EQ(error_of<DataError>([&] { open_batches(config, Split::train, shape, 1); }),
              "data.train: expected a folder, got nothing: no 'no', looked for in " + here);
    EXPECT_EQ(error_of<DataError>([&] { identity_of(config); }),
              "data.train: expected a folder, got nothing: no 'no', looked for in " + here);
  }
}

TEST(Files, ErrorsSayHowToFetchWhatTheRecipesReadAndDoesNotComeWithThem) {
  for (const auto& [entry, name] : {std::pair{"data/english", "english"}, std::pair{"data/books/train", "books"},
                                    std::pair{"data/novels", "novels"}}) {
    EXPECT_TRUE(error_of<DataError>([&] {
                  expand_files("data.train", {entry});
                }).ends_with(std::string("; `python3 tools/real_data.py ") + name + "` fetches it"))
        << entry;
  }
  DataConfig images;
  images.source = Source::idx;
  images.train = {"data/fashion-mnist"};
  EXPECT_TRUE(error_of<DataError>([&] {
                check_folders(images);
              }).ends_with("; `python3 tools/real_data.py fashion-mnist` fetches it"));
  for (const char* const other : {"data/bookshelf", "books/train", "data/mine"}) {
    EXPECT_EQ(error_of<DataError>([&] { expand_files("data.train", {other}); }).find("fetches"), std::string::npos);
  }
}

}  // namespace
}  // namespace siamese::data

#include "siamese/data/files.h"

#include "tests/data/support.h"
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace siamese::data

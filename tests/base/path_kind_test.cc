#include "siamese/base/path_kind.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/support/limited_child.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/base/check.h"

namespace siamese {
namespace {

namespace fs = std::filesystem;

class PathKinds : public testing::Test {
 protected:
  PathKinds() {
    std::string name = (fs::temp_directory_path() / "siamese_base_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder = name;
    std::ofstream(folder / "file") << "x";
    fs::create_directory(folder / "inner");
    std::ofstream(folder / "inner" / "file") << "x";
    fs::create_symlink("round", folder / "round");
    fs::create_symlink("gone", folder / "dangling");
  }
  ~PathKinds() override { fs::remove_all(folder); }

  fs::path folder;
};

// What path_kind or folder_entries says when it cannot tell.
template <class Look>
std::string reason(Look look) {
  try {
    look();
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(PathKinds, WhatIsThereIsTold) {
  EXPECT_EQ(path_kind(folder), PathKind::folder);
  EXPECT_EQ(path_kind(folder / "file"), PathKind::file);
  EXPECT_EQ(path_kind(folder / "none"), PathKind::missing);
  EXPECT_EQ(path_kind(folder / "none" / "deeper"), PathKind::missing);
  EXPECT_EQ(path_kind(folder / "dangling"), PathKind::missing);
  EXPECT_EQ(path_kind("/dev/null"), PathKind::other);
  EXPECT_TRUE(is_taken(folder / "dangling"));
  EXPECT_TRUE(is_taken(folder / "round"));
  EXPECT_FALSE(is_taken(folder / "none"));
  EXPECT_FALSE(is_taken(folder / "file" / "x"));
  EXPECT_EQ(folder_entries(folder),
            (std::vector<fs::path>{folder / "dangling", folder / "file", folder / "inner", folder / "round"}));
}

TEST_F(PathKinds, WhatTheSystemWillNotTellIsNotMissing) {
  const fs::path below_file = folder / "file" / "x";
  EXPECT_EQ(reason([&] { path_kind(below_file); }), "cannot read '" + below_file.string() + "': Not a directory");
  EXPECT_EQ(reason([&] { path_kind(folder / "round"); }),
            "cannot read '" + (folder / "round").string() + "': Too many levels of symbolic links");
  const fs::path long_name = folder / std::string(300, 'n');
  EXPECT_EQ(reason([&] { path_kind(long_name); }), "cannot read '" + long_name.string() + "': File name too long");
  EXPECT_EQ(reason([&] { folder_entries(folder / "none"); }),
            "cannot read '" + (folder / "none").string() + "': No such file or directory");
  EXPECT_EQ(reason([&] { folder_entries(folder / "file"); }),
            "cannot read '" + (folder / "file").string() + "': Not a directory");
}

// In a child that is nobody, because root may look everywhere.
TEST_F(PathKinds, AFolderThatMayNotBeEnteredIsNotEmpty) {
  ::chmod(folder.c_str(), 0755);
  ::chmod((folder / "inner").c_str(), 0);
  const fs::path file = folder / "inner" / "file";
  EXPECT_TRUE(holds_as_nobody([&] {
    return reason([&] { path_kind(file); }) == "cannot read '" + file.string() + "': Permission denied" &&
           reason([&] { folder_entries(folder / "inner"); }) ==
               "cannot read '" + (folder / "inner").string() + "': Permission denied";
  }));
  ::chmod((folder / "inner").c_str(), 0755);
}

}  // namespace
}  // namespace siamese

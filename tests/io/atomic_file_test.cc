#include "siamese/io/atomic_file.h"

#include <algorithm>

#include "tests/io/support.h"
#include <sys/stat.h>

#include "siamese/io/mapped_file.h"

namespace siamese::io {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public InFolder {};
class AtomicDirectoryTest : public InFolder {};
class MappedFileTest : public InFolder {};

TEST_F(AtomicFileTest, WritesAndReplacesWithoutLeftovers) {
  const auto path = folder_ / "a.txt";
  write_file_atomic(path, "first");
  EXPECT_EQ(read_file(path), "first");
  const std::string binary("a\0b\n", 4);
  write_file_atomic(path, binary);
  EXPECT_EQ(read_file(path), binary);
  write_file_atomic(path, "");
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(names(), std::vector<std::string>{"a.txt"});
}

TEST_F(AtomicFileTest, AFolderIsMadeWithThoseItLiesIn) {
  make_directory(folder_ / "a" / "b");
  make_directory(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b"));
  put("file", "x");
  EXPECT_THROW(make_directory(folder_ / "file"), SystemError);
  EXPECT_THROW(make_directory(folder_ / "file" / "below"), SystemError);
}

TEST_F(AtomicFileTest, WritesARelativePath) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomic("bare.txt", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder_ / "bare.txt"), "x");
}

TEST_F(AtomicFileTest, PiecesAppearOnlyOnCommit) {
  const auto path = put("a.txt", "old");
  {
    AtomicFile file(path);
    file.write("ne");
    file.write("w");
    EXPECT_EQ(read_file(path), "old");
    ASSERT_EQ(names().size(), 2U);
    EXPECT_TRUE(is_aside_name(names()[1])) << names()[1];
    file.commit();
    EXPECT_EQ(read_file(path), "new");
  }
  {
    AtomicFile abandoned(path);
    abandoned.write("half");
  }
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"a.txt"});
}

TEST_F(AtomicFileTest, AFullDiskLeavesTheOldContent) {
  const auto path = put("a.txt", "old");
  const std::string large(100'000, 'x');
  {
    FullDisk full(4096);
    expect_error<SystemError>([&] { write_file_atomic(path, large); }, {"cannot write", path.string(), "too large"});
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a.txt"});
}

TEST_F(AtomicFileTest, NamesAPathThatCannotBeWritten) {
  put("file", "x");
  const auto below_a_file = folder_ / "file" / "a.txt";
  expect_error<SystemError>([&] { write_file_atomic(below_a_file, "x"); }, {below_a_file.string(), "Not a directory"});
  const auto nowhere = folder_ / "missing" / "a.txt";
  expect_error<SystemError>([&] { write_file_atomic(nowhere, "x"); }, {nowhere.string(), "No such file"});
  const auto folder = folder_ / "folder";
  fs::create_directory(folder);
  expect_error<SystemError>([&] { write_file_atomic(folder, "x"); }, {folder.string(), "directory"});
  EXPECT_EQ(names(), (std::vector<std::string>{"file", "folder"}));
}

TEST_F(AtomicFileTest, ReadingNamesTheFile) {
  expect_error<DataError>([&] { read_file(folder_ / "none"); }, {(folder_ / "none").string(), "No such file"});
  expect_error<DataError>([&] { read_file(folder_); }, {folder_.string(), "expected a regular file, got a folder"});
  expect_error<DataError>([&] { read_file("/dev/null"); }, {"/dev/null", "special file"});
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // claims 0 bytes
}

TEST_F(AtomicDirectoryTest, AppearsWhole) {
  const auto final_path = folder_ / "step5";
  {
    AtomicDirectory directory(final_path);
    EXPECT_EQ(directory.path().parent_path(), folder_);
    write_file_atomic(directory.path() / "a", "1");
    fs::create_directory(directory.path() / "inner");
    write_file_atomic(directory.path() / "inner" / "b", "2");
    EXPECT_FALSE(fs::exists(final_path));
    directory.commit();
  }
  EXPECT_EQ(read_file(final_path / "a"), "1");
  EXPECT_EQ(read_file(final_path / "inner" / "b"), "2");
  EXPECT_EQ(names(), std::vector<std::string>{"step5"});
}

TEST_F(AtomicDirectoryTest, ReplacesAnOldFolderAsAWhole) {
  put("step5/old_only", "old");
  {
    AtomicDirectory directory(folder_ / "step5/");  // a trailing slash means the same folder
    write_file_atomic(directory.path() / "new_only", "new");
    EXPECT_TRUE(fs::exists(folder_ / "step5" / "old_only"));
    directory.commit();
  }
  EXPECT_FALSE(fs::exists(folder_ / "step5" / "old_only"));
  EXPECT_EQ(read_file(folder_ / "step5" / "new_only"), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"step5"});
}

TEST_F(AtomicDirectoryTest, WithoutCommitNothingChanges) {
  put("step5/a", "old");
  {
    AtomicDirectory directory(folder_ / "step5");
    write_file_atomic(directory.path() / "a", "new");
  }
  EXPECT_EQ(read_file(folder_ / "step5" / "a"), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"step5"});
}

TEST_F(AtomicFileTest, RefusesWhatCameMeanwhile) {
  AtomicFile file(folder_ / "a", Standing::refused);
  file.write("late");
  put("a", "first");
  expect_error<UsageError>([&] { file.commit(); }, {(folder_ / "a").string(), "somebody made it meanwhile"});
  EXPECT_EQ(read_file(folder_ / "a"), "first");
  AtomicFile over_nothing(folder_ / "b", Standing::refused);
  over_nothing.write("new");
  over_nothing.commit();
  EXPECT_EQ(read_file(folder_ / "b"), "new");
}

TEST_F(AtomicDirectoryTest, RefusesWhatCameMeanwhile) {
  AtomicDirectory directory(folder_ / "step5");
  write_file_atomic(directory.path() / "a", "late");
  put("step5/a", "first");
  expect_error<UsageError>([&] { directory.commit(Standing::refused); },
                           {(folder_ / "step5").string(), "somebody made it meanwhile"});
  EXPECT_EQ(read_file(folder_ / "step5" / "a"), "first");
  AtomicDirectory over_nothing(folder_ / "step6");
  fs::create_directory(folder_ / "step6");
  over_nothing.commit(Standing::refused);  // an empty folder is nobody's
}

TEST_F(AtomicDirectoryTest, DoesNotReplaceAFile) {
  put("step5", "a file");
  {
    AtomicDirectory directory(folder_ / "step5");
    expect_error<SystemError>([&] { directory.commit(); }, {(folder_ / "step5").string(), "Not a directory"});
  }
  EXPECT_EQ(read_file(folder_ / "step5"), "a file");
  EXPECT_EQ(names(), std::vector<std::string>{"step5"});
}

TEST_F(AtomicDirectoryTest, NamesAPathThatCannotBeCreated) {
  put("file", "x");
  const auto below_a_file = folder_ / "file" / "step5";
  expect_error<SystemError>([&] { AtomicDirectory directory(below_a_file); },
                            {below_a_file.string(), "Not a directory"});
}

TEST_F(AtomicDirectoryTest, RemovesAFolderAndSaysWhenItCannot) {
  put("step5/model", "x");
  put("step5/inner/more", "x");
  put("step6/model", "x");
  remove_folder(folder_ / "step5");
  EXPECT_EQ(names(), std::vector<std::string>{"step6"});
  expect_error<SystemError>([&] { remove_folder(folder_ / "step5"); },
                            {"cannot remove", (folder_ / "step5").string(), "No such file"});
}

TEST_F(MappedFileTest, ShowsTheBytes) {
  MappedFile file(put("a", "hello"));
  ASSERT_EQ(file.size(), 5u);
  EXPECT_EQ(std::memcmp(file.data(), "hello", 5), 0);
  const std::byte* data = file.data();
  MappedFile moved(std::move(file));
  EXPECT_EQ(moved.data(), data);
  MappedFile other(put("b", "b"));
  other = std::move(moved);
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(other.size(), 5u);
}

TEST_F(MappedFileTest, EmptyIsAllowedMissingIsNot) {
  MappedFile empty(put("empty", ""));
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_EQ(empty.data(), nullptr);
  expect_error<DataError>([&] { MappedFile file(folder_ / "none"); }, {(folder_ / "none").string(), "No such file"});
  expect_error<DataError>([&] { MappedFile file(folder_); }, {folder_.string(), "a folder"});
  expect_error<DataError>([&] { MappedFile file("/dev/zero"); }, {"/dev/zero", "special file"});
}

// A rename would put a file in the place of /dev/null.
TEST_F(AtomicFileTest, SpecialFilesAreNotReplaced) {
  const auto path = std::filesystem::temp_directory_path() / ("siamese_pipe_" + std::to_string(getpid()));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(write_file_atomic(path, "text"), UsageError);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace siamese::io

#include "siamese/io/aside.h"

#include "tests/io/support.h"
#include <sys/file.h>
#include <sys/wait.h>

#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"

namespace siamese::io {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class AsideTest : public InFolder {
 protected:
  // What a writer of `name` leaves that was killed half-way.
  fs::path leave(const std::string& name, Aside aside, const std::string& content = "half") const {
    return put(aside_name(folder_ / name, aside).filename().string(), content);
  }
  fs::path leave_folder(const std::string& name, Aside aside, const std::string& content = "half") const {
    const fs::path folder = aside_name(folder_ / name, aside);
    put(folder.filename().string() + "/model", content);
    return folder;
  }
};

TEST_F(AsideTest, OnlyOurOwnNamesAreKnown) {
  for (const Aside aside : {Aside::writing, Aside::moved_away}) {
    const std::string name = aside_name(folder_ / "step5", aside).filename().string();
    EXPECT_TRUE(is_aside_name(name)) << name;
    EXPECT_TRUE(name.starts_with(aside == Aside::writing ? "step5.tmp-" : "step5.old-")) << name;
    EXPECT_NE(name, aside_name(folder_ / "step5", aside).filename().string());
    for (size_t i = 0; i < name.size(); ++i) {  // no character of it may be another
      std::string other = name;
      other[i] = other[i] == 'a' ? 'b' : 'a';
      EXPECT_FALSE(is_aside_name(other)) << other;
    }
    EXPECT_FALSE(is_aside_name(name + "0"));
    EXPECT_FALSE(is_aside_name(name.substr(1)));
  }
  for (const auto* const theirs : {"photos.old-2023", "report.old-99999", "step5.tmp-123", "notes.tmp-today", ".tmp-",
                                   "", "x.tmp-0123456789abcdef-0123456789abcdef-01234567"}) {
    EXPECT_FALSE(is_aside_name(theirs)) << theirs;
  }
}

TEST_F(AsideTest, RemovesWhatTheDeadLeftAndNothingElse) {
  put("photos.old-2023/holiday.jpg", "mine");
  put("report.old-99999", "mine");
  put("notes.tmp-12", "mine");
  put("step7/model", "whole");
  leave_folder("step5", Aside::writing);
  leave("metrics.jsonl", Aside::writing);
  EXPECT_EQ(remove_leftovers(folder_), 2);
  EXPECT_EQ(names(), (Names{"notes.tmp-12", "photos.old-2023", "report.old-99999", "step7"}));
  EXPECT_EQ(remove_leftovers(folder_ / "missing"), 0);
}

TEST_F(AsideTest, OfOneNameOnly) {
  leave("a", Aside::writing);
  const fs::path other = leave("a.b", Aside::writing);
  EXPECT_EQ(remove_leftovers(folder_, "a"), 1);
  EXPECT_EQ(names(), Names{other.filename().string()});
}

// What tells the living is the lock, not a process id: in another container the id means nothing.
TEST_F(AsideTest, WhatIsBeingWrittenStays) {
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    const AsideEntry file = create_aside_file(folder_ / "a");
    const AsideEntry folder = create_aside_folder(folder_ / "b");
    char byte = 0;
    if (::write(ready[1], &byte, 1) != 1 || ::read(done[0], &byte, 1) != 1) ::_exit(1);
    ::_exit(0);  // as killed: nothing is tidied up
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(remove_leftovers(folder_), 0);
  EXPECT_EQ(names().size(), 2U);
  ASSERT_EQ(::write(done[1], &byte, 1), 1);
  ::waitpid(writer, nullptr, 0);
  EXPECT_EQ(remove_leftovers(folder_), 2);
  EXPECT_TRUE(names().empty());
  for (const int descriptor : {ready[0], ready[1], done[0], done[1]}) ::close(descriptor);
}

TEST_F(AsideTest, PutsBackAFolderThatWasNeverReplaced) {
  leave_folder("step5", Aside::moved_away, "five");
  leave_folder("step6", Aside::moved_away, "old six");
  put("step6/model", "six");
  EXPECT_EQ(remove_leftovers(folder_), 2);
  EXPECT_EQ(names(), (Names{"step5", "step6"}));
  EXPECT_EQ(read_file(folder_ / "step5" / "model"), "five");
  EXPECT_EQ(read_file(folder_ / "step6" / "model"), "six");
}

// The same command again leaves nothing of a killed one behind.
TEST_F(AsideTest, AWriterTidiesUpAfterKilledOnesOfItsName) {
  leave("report.html", Aside::writing);
  const fs::path other = leave("other.html", Aside::writing);
  write_file_atomic(folder_ / "report.html", "whole");
  EXPECT_EQ(names(), (Names{other.filename().string(), "report.html"}));
  fs::remove(other);
  leave_folder("step5", Aside::writing);
  {
    AtomicDirectory directory(folder_ / "step5");
    EXPECT_TRUE(fs::is_empty(directory.path()));
    directory.commit();
  }
  EXPECT_EQ(names(), (Names{"report.html", "step5"}));
  leave_folder("step5", Aside::writing);
  remove_folder(folder_ / "step5");
  EXPECT_EQ(names(), Names{"report.html"});
}

TEST_F(AsideTest, LinksAreNotFollowed) {
  put("theirs/holiday.jpg", "mine");
  fs::create_directory_symlink(folder_ / "theirs", aside_name(folder_ / "step5", Aside::writing));
  remove_leftovers(folder_);
  EXPECT_EQ(read_file(folder_ / "theirs" / "holiday.jpg"), "mine");
}

// A lock that was waited for on a folder that is no longer there protects nothing. (A link is replaced in one step, so
// that there is always a folder at the path, whenever the other process looks.)
TEST_F(AsideTest, AReplacedDirectoryIsLockedAnew) {
  put("old/a", "x");
  put("new/a", "x");
  fs::create_directory_symlink("old", folder_ / "run");
  fs::create_directory_symlink("new", folder_ / "next");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t waiter = ::fork();
  if (waiter == 0) {
    int code = 3;
    try {
      const char byte = 0;
      if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
      const DirectoryLock lock(folder_ / "run", DirectoryLock::WhenHeld::wait);
      const int other = ::open((folder_ / "run").c_str(), O_RDONLY | O_DIRECTORY);
      code = ::flock(other, LOCK_EX | LOCK_NB) == 0 ? 2 : 0;  // 2: what stands there now is not locked
    } catch (const std::exception&) {
    }
    ::_exit(code);
  }
  {
    const DirectoryLock lock(folder_ / "run", DirectoryLock::WhenHeld::wait);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    fs::rename(folder_ / "next", folder_ / "run");
  }
  int status = 0;
  ::waitpid(waiter, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int descriptor : ready) ::close(descriptor);
}

}  // namespace
}  // namespace siamese::io

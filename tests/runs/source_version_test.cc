// cmake/source_version.cmake: with git, without it, from an archive; and that nothing is written twice.
#include <cstdlib>
#include <fstream>

#include "tests/runs/support.h"

#include "siamese/io/atomic_file.h"

namespace siamese::runs {
namespace {

namespace fs = std::filesystem;

class SourceVersionTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    fs::create_directories(tree() / "cmake");
    fs::create_directories(tree() / "siamese");
    std::ofstream(tree() / "cmake" / "archive_commit.txt") << "$Format:%H$\n";
    std::ofstream(tree() / "siamese" / "a.cc") << "1\n";
    std::ofstream(tree() / "notes.md") << "1\n";
  }
  fs::path tree() const { return folder_ / "tree"; }

  static bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }
  bool git(const std::string& arguments) const {
    return run("git -C " + tree().string() + " -c user.name=n -c user.email=e -c commit.gpgsign=false " + arguments);
  }
  std::string written() const {
    const fs::path out = folder_ / "source.cc";
    EXPECT_TRUE(run(std::string(SIAMESE_CMAKE) + " -DOUT=" + out.string() + " -DROOT=" + tree().string() +
                    " -DVERSION=9.8.7 -DGIT=git -P " SIAMESE_SOURCE_DIR "/cmake/source_version.cmake"));
    return io::read_file(out);
  }
  static std::string value(const std::string& text, const std::string& name) {
    const size_t from = text.find(name + " = \"") + name.size() + 4;
    return text.substr(from, text.find('"', from) - from);
  }
};

TEST_F(SourceVersionTest, WithoutGitTheArchiveSays) {
  EXPECT_EQ(value(written(), "kSourceVersion"), "9.8.7");
  EXPECT_EQ(value(written(), "kSourceCommit"), "");
  const std::string commit(40, 'c');
  std::ofstream(tree() / "cmake" / "archive_commit.txt") << commit << "\n";
  EXPECT_EQ(value(written(), "kSourceCommit"), commit);
  EXPECT_EQ(value(written(), "kSourceDirty"), "");
}

TEST_F(SourceVersionTest, GitSaysWhichSourcesAndWhetherTheyChanged) {
  if (!run("git --version")) return;  // as from an archive: the test above
  ASSERT_TRUE(git("init") && git("add -A") && git("commit -m one"));
  const std::string first = written();
  const std::string commit = value(first, "kSourceCommit");
  EXPECT_EQ(commit.size(), 40u);
  EXPECT_EQ(value(first, "kSourceDirty"), "");
  const auto when = fs::last_write_time(folder_ / "source.cc");
  std::ofstream(tree() / "notes.md") << "2\n";
  ASSERT_TRUE(git("commit -am docs"));
  EXPECT_EQ(written(), first);  // no part of a build
  EXPECT_EQ(fs::last_write_time(folder_ / "source.cc"), when);
  std::ofstream(tree() / "siamese" / "a.cc") << "2\n";
  const std::string changed = value(written(), "kSourceDirty");
  EXPECT_EQ(changed.size(), 8u);
  EXPECT_EQ(value(written(), "kSourceCommit"), commit);
  std::ofstream(tree() / "siamese" / "new.cc") << "1\n";
  EXPECT_NE(value(written(), "kSourceDirty"), changed);
  ASSERT_TRUE(git("add -A") && git("commit -m two"));
  EXPECT_EQ(value(written(), "kSourceDirty"), "");
  EXPECT_NE(value(written(), "kSourceCommit"), commit);
}

}  // namespace
}  // namespace siamese::runs

// A file that grows, is torn, cut, replaced and deleted while it is read.
#include "siamese/runs/line_tail.h"

#include <fstream>

#include "tests/runs/support.h"
#include <sys/stat.h>

#include "siamese/io/atomic_file.h"

namespace siamese::runs {
namespace {

class LineTailTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    file_ = folder_ / "metrics.jsonl";
  }
  void append(const std::string& text) const { std::ofstream(file_, std::ios::binary | std::ios::app) << text; }
  void overwrite(const std::string& text) const { std::ofstream(file_, std::ios::binary) << text; }
  // All that is new, each line behind a space.
  std::string news(LineTail& tail) {
    std::string all;
    while (tail.read(
        [&](std::string_view line, const std::string& where) {
          all += " " + std::string(line);
          where_ = where;
        },
        notes_)) {
    }
    return all;
  }

  std::filesystem::path file_;
  Notes notes_;
  std::string where_;
};

TEST_F(LineTailTest, EachLineComesOnceAndOnlyWhole) {
  LineTail tail(file_);
  EXPECT_EQ(tail.look(), TailChange::none);  // not there yet
  append("a\nb\nhal");
  EXPECT_EQ(tail.look(), TailChange::grown);
  EXPECT_EQ(news(tail), " a b");
  EXPECT_TRUE(tail.torn());
  EXPECT_EQ(tail.look(), TailChange::none);
  EXPECT_EQ(news(tail), "");
  append("f\n\n \r\nc\n");
  EXPECT_EQ(tail.look(), TailChange::grown);
  EXPECT_EQ(news(tail), " half c");
  EXPECT_EQ(where_, file_.string() + ": line 6");
  EXPECT_FALSE(tail.torn());
  EXPECT_TRUE(notes_.empty());
}

TEST_F(LineTailTest, ACutFileBeginsAgain) {
  append("a\nb\nc\n");
  LineTail tail(file_);
  tail.look();
  EXPECT_EQ(news(tail), " a b c");
  overwrite("a\n");  // the same inode, shorter
  EXPECT_EQ(tail.look(), TailChange::restarted);
  EXPECT_EQ(news(tail), " a");
  overwrite("a\nx\ny\n");  // the same inode, longer, but the line that was read stands: nothing was cut
  EXPECT_EQ(tail.look(), TailChange::grown);
  EXPECT_EQ(news(tail), " x y");
}

TEST_F(LineTailTest, AFileCutAndGrownPastWhatWasReadBeginsAgain) {
  append("a 1\nb 1\n");
  LineTail tail(file_);
  tail.look();
  EXPECT_EQ(news(tail), " a 1 b 1");
  overwrite("a 1\nb 2\nc 2\nd 2\n");
  EXPECT_EQ(tail.look(), TailChange::restarted);
  EXPECT_EQ(news(tail), " a 1 b 2 c 2 d 2");
}

TEST_F(LineTailTest, AReplacedFileBeginsAgain) {
  append("a\nb\n");
  LineTail tail(file_);
  tail.look();
  EXPECT_EQ(news(tail), " a b");
  io::write_file_atomic(file_, "a\nb\nc\n");  // as resume does: another inode with the same beginning
  EXPECT_EQ(tail.look(), TailChange::restarted);
  EXPECT_EQ(news(tail), " a b c");
}

TEST_F(LineTailTest, ADeletedFileIsGoneAndMayComeBack) {
  append("a\n");
  LineTail tail(file_);
  tail.look();
  EXPECT_EQ(news(tail), " a");
  EXPECT_NE(tail.changed(), 0);
  std::filesystem::remove(file_);
  EXPECT_EQ(news(tail), "");  // deleted between look and read
  EXPECT_EQ(tail.look(), TailChange::gone);
  EXPECT_EQ(tail.changed(), 0);
  EXPECT_EQ(tail.look(), TailChange::none);
  append("b\n");
  EXPECT_EQ(tail.look(), TailChange::grown);
  EXPECT_EQ(news(tail), " b");
}

TEST_F(LineTailTest, LargeFilesComeInTurnsAndHugeLinesArePassedOver) {
  const std::string line(1000, 'x');
  std::string text;
  while (text.size() < 3 * LineTail::kMostAtOnce) text += line + "\n";
  const auto count = static_cast<int64_t>(text.size() / (line.size() + 1));
  append(text);
  LineTail tail(file_);
  tail.look();
  int64_t seen = 0;
  const auto use = [&](std::string_view one, const std::string&) { seen += one == line; };
  EXPECT_TRUE(tail.read(use, notes_));
  EXPECT_LT(seen, count);
  while (tail.read(use, notes_)) {
  }
  EXPECT_EQ(seen, count);
  EXPECT_TRUE(notes_.empty());
  append(std::string(LineTail::kMostAtOnce + 5, 'y') + "\nafter\n");  // longer than a turn, not too long
  tail.look();
  EXPECT_EQ(news(tail).size(), LineTail::kMostAtOnce + 5 + 1 + 6);
  append(std::string(2 * LineTail::kLongestLine + 7, 'z') + "\nlast\n");
  tail.look();
  EXPECT_EQ(news(tail), " last");
  ASSERT_EQ(notes_.size(), 1u);
  expect_said(notes_[0], "expected at most 16777216 bytes");
}

TEST_F(LineTailTest, APipeIsNoFileOfARunAndNobodyWaitsForIt) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  LineTail tail(file_);
  EXPECT_EQ(tail.look(), TailChange::none);
}

}  // namespace
}  // namespace siamese::runs

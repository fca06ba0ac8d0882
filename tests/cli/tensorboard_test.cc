// train.tensorboard and report --tensorboard as a user meets them.
#include "tests/cli/command.h"

namespace siamese::cli {
namespace {

class TensorBoardFiles : public CommandTest {
 protected:
  std::vector<std::string> event_files(const std::string& below) const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / below)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("events.out.tfevents.")) all.push_back(entry.path().lexically_relative(folder).string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  const std::string on = tiny + "--quiet train.tensorboard=true ";
};

TEST_F(TensorBoardFiles, AreWhatTheLinesSay) {
  ASSERT_EQ(run(on + "train.record_every=2 --out run").exit_code, 0) << read("error.txt");
  ASSERT_EQ(event_files("run").size(), 1U);
  const std::string events = read(event_files("run")[0]);
  for (const char* const tag : {"train/loss", "train/lr", "eval/loss", "eval/accuracy", "depth_X_before/site003_ffn"}) {
    EXPECT_NE(events.find(tag), std::string::npos) << tag;
  }
  // The same from the lines alone, and for a run that wrote none.
  ASSERT_EQ(run("report run --tensorboard board").exit_code, 0) << read("error.txt");
  ASSERT_EQ(event_files("board").size(), 1U);
  EXPECT_TRUE(event_files("board")[0].starts_with("board/run/"));
  EXPECT_EQ(read(event_files("board")[0]), events);
  EXPECT_EQ(run(tiny + "--quiet --out plain").exit_code, 0);
  EXPECT_TRUE(event_files("plain").empty());
}

// Stopped and gone on: what a run that nobody disturbed would have, but for the times.
TEST_F(TensorBoardFiles, GoOnWithTheirRun) {
  ASSERT_EQ(run(on + "train.max_hours=1e-9 --out run").exit_code, 75) << read("error.txt");
  const auto before = event_files("run");
  ASSERT_EQ(before.size(), 1U);
  ASSERT_EQ(run("resume run --quiet train.max_hours=0").exit_code, 0) << read("error.txt");
  ASSERT_EQ(event_files("run").size(), 1U);
  const std::string events = read(event_files("run")[0]);
  size_t losses = 0;
  for (size_t at = events.find("train/loss"); at != std::string::npos; at = events.find("train/loss", at + 1)) ++losses;
  EXPECT_EQ(losses, 6U);
  ASSERT_EQ(run("report run --tensorboard board").exit_code, 0);
  EXPECT_EQ(read(event_files("board")[0]), events);
  // They belong to the run.
  EXPECT_EQ(run(tiny + "--quiet --out run --overwrite").exit_code, 0) << read("error.txt");
  EXPECT_TRUE(event_files("run").empty());
}

// Another's folder of such a name is not ours to remove; the events are written beside it.
TEST_F(TensorBoardFiles, WhatIsNoFileOfOursStays) {
  ASSERT_EQ(run(on + "train.max_hours=1e-9 --out run").exit_code, 75);
  std::filesystem::create_directories(folder / "run/events.out.tfevents.0000000001.siamese");
  ASSERT_EQ(run("resume run --quiet train.max_hours=0").exit_code, 0) << read("error.txt");
  EXPECT_EQ(event_files("run").size(), 2U);
  expect_refusal(tiny + "--out run --overwrite", 2, "events.out.tfevents.0000000001.siamese");
}

TEST_F(TensorBoardFiles, OfASweepAndOfSeveralRuns) {
  std::filesystem::create_directories(folder / "a");
  std::filesystem::create_directories(folder / "b");
  for (const char* const name : {"a/run", "b/run", "c"}) {
    ASSERT_EQ(run(tiny + "--quiet train.steps=2 --out " + name).exit_code, 0) << read("error.txt");
  }
  ASSERT_EQ(run("report a/run b/run c --tensorboard board --out page.html").exit_code, 0) << read("error.txt");
  const auto files = event_files("board");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_TRUE(files[0].starts_with("board/a/run/"));
  EXPECT_TRUE(files[1].starts_with("board/b/run/"));
  EXPECT_TRUE(files[2].starts_with("board/c/"));
  expect_refusal("report c --json --tensorboard board", 2, "--json");
}

}  // namespace
}  // namespace siamese::cli

// Runs that are written, resumed, deleted and added while they are watched, and what a reader is told.
#include "siamese/report/live_runs.h"

#include <filesystem>
#include <fstream>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/report/live_feed.h"
#include "siamese/report/live_page.h"
#include "siamese/runs/step_record.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class LiveRunsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / ("siamese_live_" + std::string(info->name()) + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  static void append(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::app) << text;
  }
  static std::string step_line(int64_t step, double loss) {
    runs::StepRecord record;
    record.step = step;
    record.loss = loss;
    record.tokens_per_s = record.samples_per_s = record.step_ms = 1;
    return runs::to_line(record) + "\n";
  }
  // Everything that a reader is told until there is no more, as one list of run objects.
  static json all_news(LiveRuns& runs, Seen& seen) {
    while (runs.poll().more) {
    }
    json all{{"runs", json::array()}, {"gone", json::array()}};
    for (std::string text = runs.news(seen); !text.empty(); text = runs.news(seen)) {
      const json message = json::parse(text);
      for (const json& run : message.value("runs", json::array())) all["runs"].push_back(run);
      for (const json& id : message.value("gone", json::array())) all["gone"].push_back(id);
      if (message.contains("problems")) all["problems"] = message["problems"];
    }
    return all;
  }

  fs::path root_;
};

TEST_F(LiveRunsTest, AReaderGetsEverythingAndThenOnlyWhatIsNew) {
  write_fake_run(root_ / "run", {.scheme = "siamese", .last_step = 100, .status = "running", .streams = {"X", "Y"}});
  LiveRuns runs({root_ / "run"});
  Seen seen;
  const json first = all_news(runs, seen);
  ASSERT_EQ(first["runs"].size(), 1u);
  const json run = first["runs"][0];
  EXPECT_EQ(run["state"], "running");
  EXPECT_EQ(run["variant"], "siamese");
  EXPECT_EQ(run["step"], 100);
  EXPECT_EQ(run["steps"], 200);
  EXPECT_EQ(run["curve"]["loss"].size(), 100u);
  EXPECT_EQ(run["evals"]["step"], json({50, 100}));
  EXPECT_EQ(run["recorded"], 3);  // steps 1, 50, 100
  EXPECT_TRUE(all_news(runs, seen)["runs"].empty());

  append(root_ / "run" / "metrics.jsonl", step_line(101, 1.25) + step_line(102, 1.5));
  const json second = all_news(runs, seen)["runs"][0];
  EXPECT_EQ(second["curve"]["from"], 99);  // the last bucket again, and two new ones
  EXPECT_EQ(second["curve"]["loss"].size(), 3u);
  EXPECT_EQ(second["curve"]["loss"][2], 1.5);
  EXPECT_EQ(second["step"], 102);
  EXPECT_TRUE(second["evals"]["step"].empty());

  Seen another;  // a page that is opened later
  EXPECT_EQ(all_news(runs, another)["runs"][0]["curve"]["loss"].size(), 102u);
}

TEST_F(LiveRunsTest, AResumedRunBeginsAgainWhereItWasCut) {
  write_fake_run(root_ / "run", {.last_step = 100, .status = "running"});
  LiveRuns runs({root_ / "run"});
  Seen seen;
  all_news(runs, seen);
  std::string text = io::read_file(root_ / "run" / "metrics.jsonl");
  size_t end = 0;
  for (int line = 0; line < 60; ++line) end = text.find('\n', end) + 1;
  io::write_file_atomic(root_ / "run" / "metrics.jsonl", text.substr(0, end));
  const json cut = all_news(runs, seen)["runs"][0];
  EXPECT_EQ(cut["curve"]["from"], 0);
  EXPECT_EQ(cut["curve"]["loss"].size(), 60u);
  EXPECT_EQ(cut["curve"]["last"], 60);
  EXPECT_EQ(cut["recorded"], 2);
  EXPECT_EQ(cut["restarts"], 1);
}

TEST_F(LiveRunsTest, HalfALineWaitsForItsEnd) {
  write_fake_run(root_ / "run", {.last_step = 10, .status = "running", .eval_every = 0});
  LiveRuns runs({root_ / "run"});
  Seen seen;
  all_news(runs, seen);
  const std::string line = step_line(11, 0.75);
  append(root_ / "run" / "metrics.jsonl", line.substr(0, 20));
  const json news = all_news(runs, seen);
  for (const json& run : news["runs"]) {
    EXPECT_EQ(run["step"], 10);
    EXPECT_TRUE(run["alerts"].empty()) << run["alerts"];
  }
  append(root_ / "run" / "metrics.jsonl", line.substr(20));
  const json run = all_news(runs, seen)["runs"][0];
  EXPECT_EQ(run["step"], 11);
  EXPECT_EQ(run["curve"]["loss"].back(), 0.75);
}

TEST_F(LiveRunsTest, DamageIsOneLineAndTheRestIsShown) {
  write_fake_run(root_ / "run", {.last_step = 10, .status = "running"});
  std::string damaged = step_line(11, 0.5);
  damaged[damaged.find("0.5") + 2] = '6';
  append(root_ / "run" / "metrics.jsonl",
         damaged + "{\"schema\":3,\"step\":12}\nno json\n" + std::string(1, '\0') + "\n" + step_line(13, 0.25));
  LiveRuns runs({root_ / "run"});
  Seen seen;
  const json run = all_news(runs, seen)["runs"][0];
  EXPECT_EQ(run["step"], 13);
  EXPECT_EQ(run["curve"]["loss"].back(), 0.25);
  ASSERT_EQ(run["alerts"].size(), 1u);
  EXPECT_EQ(run["alerts"][0]["kind"], "file");
  const std::string text = run["alerts"][0]["text"];
  EXPECT_NE(text.find("metrics.jsonl: line 11: checksum"), std::string::npos) << text;
  EXPECT_NE(text.find("and 3 more such places"), std::string::npos) << text;
}

TEST_F(LiveRunsTest, WhatStandsInThePlaceOfAFileIsSaid) {
  write_fake_run(root_ / "a", {.last_step = 10, .status = "running"});
  write_fake_run(root_ / "b", {.last_step = 10, .status = "running"});
  fs::remove(root_ / "a" / "metrics.jsonl");
  fs::create_directory(root_ / "a" / "metrics.jsonl");
  fs::remove(root_ / "b" / "eval.jsonl");
  ASSERT_EQ(::mkfifo((root_ / "b" / "eval.jsonl").c_str(), 0600), 0);
  LiveRuns runs({root_});
  Seen seen;
  const json first = all_news(runs, seen)["runs"];
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(first[0]["alerts"].size(), 1u);
  EXPECT_EQ(first[0]["alerts"][0]["kind"], "file");
  const auto text = [](const json& run) { return run["alerts"][0]["text"].get<std::string>(); };
  EXPECT_NE(text(first[0]).find("metrics.jsonl': expected a file, got a folder"), std::string::npos) << first;
  EXPECT_NE(text(first[1]).find("eval.jsonl': expected a file, got a pipe"), std::string::npos) << first;
  // It goes, and comes where a file stood.
  fs::remove(root_ / "a" / "metrics.jsonl");
  json later = all_news(runs, seen)["runs"];
  ASSERT_EQ(later.size(), 1u);
  EXPECT_TRUE(later[0]["alerts"].empty()) << later;
  fs::remove(root_ / "b" / "metrics.jsonl");
  fs::create_directory(root_ / "b" / "metrics.jsonl");
  later = all_news(runs, seen)["runs"];
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0]["alerts"].size(), 2u) << later;
}

TEST_F(LiveRunsTest, ARunOfAnotherSchemaIsSaidInOneLine) {
  fs::create_directories(root_ / "run");
  write_text(root_ / "run" / "run.json", R"({"schema":9,"kind":"run","status":"running"})");
  write_text(root_ / "run" / "metrics.jsonl", "{\"schema\":9,\"step\":1}\n");
  LiveRuns runs({root_ / "run"});
  Seen seen;
  const json run = all_news(runs, seen)["runs"][0];
  EXPECT_EQ(run["state"], "unknown");
  ASSERT_EQ(run["alerts"].size(), 2u);
  EXPECT_NE(run["alerts"][0]["text"].get<std::string>().find("schema: expected 1 or 2"), std::string::npos);
}

TEST_F(LiveRunsTest, RunsOfAFolderComeAndGo) {
  write_fake_sweep(root_ / "runs" / "sweep", "demo", {{.variant = "pre"}, {.variant = "post"}, {.last_step = 0}});
  write_fake_run(root_ / "runs" / "alone", {});
  fs::create_directories(root_ / "runs" / "alone" / "step100");  // of a run nothing below is looked at
  write_text(root_ / "runs" / "alone" / "step100" / "metrics.jsonl", step_line(1, 1));
  fs::create_directories(root_ / "runs" / "copied");  // a checkpoint outside its run
  write_text(root_ / "runs" / "copied" / "trainer.json", "{}");
  write_text(root_ / "runs" / "copied" / "run.json", "{}");
  LiveRuns runs({root_ / "runs"});
  Seen seen;
  const json first = all_news(runs, seen);
  std::vector<std::string> names;
  for (const json& run : first["runs"]) names.push_back(run["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"alone", "sweep/post-lr0.002-seed1", "sweep/pre-lr0.002-seed1"}));

  fs::remove_all(root_ / "runs" / "alone");
  const json gone = all_news(runs, seen);
  ASSERT_EQ(gone["gone"].size(), 1u);
  EXPECT_EQ(gone["gone"][0], first["runs"][0]["id"]);
  EXPECT_EQ(runs.size(), 2u);

  write_fake_run(root_ / "runs" / "new", {.last_step = 5, .status = "running"});
  LiveRuns later({root_ / "runs"});  // a search of its own; the other's is due in seconds
  Seen of_later;
  EXPECT_EQ(all_news(later, of_later)["runs"].size(), 3u);
  fs::remove_all(root_ / "runs");  // all of it, the named folder too
  EXPECT_EQ(all_news(later, of_later)["gone"].size(), 3u);
}

TEST_F(LiveRunsTest, ManyRunsComeInSeveralMessagesAndTheLastIsKnown) {
  for (size_t at = 0; at <= kRunsPerMessage; ++at) {
    write_fake_run(root_ / std::to_string(at), {.last_step = 1, .eval_every = 0});
    if (at + 1 < kRunsPerMessage) continue;
    LiveRuns runs({root_});
    while (runs.poll().more) {
    }
    Seen seen;
    const json first = json::parse(runs.news(seen));
    EXPECT_EQ(first["runs"].size(), kRunsPerMessage);
    EXPECT_EQ(first.contains("more"), at == kRunsPerMessage);
    const std::string second = runs.news(seen);
    ASSERT_EQ(second.empty(), at < kRunsPerMessage);
    if (second.empty()) continue;
    EXPECT_EQ(json::parse(second)["runs"].size(), 1u);
    EXPECT_FALSE(json::parse(second).contains("more"));
  }
}

TEST_F(LiveRunsTest, AFolderNamedTwiceIsOneRun) {
  write_fake_run(root_ / "runs" / "a", {});
  fs::create_directory_symlink(root_ / "runs" / "a", root_ / "runs" / "b");
  fs::create_directory_symlink(root_ / "runs", root_ / "runs" / "round");
  LiveRuns runs({root_ / "runs", root_ / "runs" / "a"});
  runs.poll();
  EXPECT_EQ(runs.size(), 1u);
}

TEST_F(LiveRunsTest, ALinkBackIsNotFollowed) {
  write_fake_run(root_ / "sweep" / "run", {.scheme = "pre", .last_step = 3});
  write_fake_run(root_ / "elsewhere" / "other", {.scheme = "post", .last_step = 3});
  fs::create_directory_symlink(root_ / "sweep", root_ / "sweep" / "again");  // before "run" by name
  fs::create_directory_symlink("..", root_ / "sweep" / "above");
  fs::create_directory_symlink(root_ / "elsewhere", root_ / "sweep" / "linked");
  LiveRuns runs({root_ / "sweep"});
  Seen seen;
  std::vector<std::string> names;
  const json all = all_news(runs, seen);
  for (const json& run : all["runs"]) names.push_back(run["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"linked/other", "run"}));
}

TEST_F(LiveRunsTest, NamesStayTextAndMessagesAscii) {
  const std::string name = "<img src=x onerror=alert(1)> \x1b[31m \xff";
  write_fake_run(root_ / "runs" / name, {.scheme = "</script><script>alert(1)</script>", .last_step = 3});
  LiveRuns runs({root_ / "runs"});
  while (runs.poll().more) {
  }
  Seen seen;
  const std::string text = runs.news(seen);
  for (const char c : text) EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
  EXPECT_EQ(json::parse(text)["runs"][0]["variant"], "</script><script>alert(1)</script>");
  const std::string page = live_page("</title><script>alert(1)</script>");
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("connect-src 'self'"), std::string::npos);
}

TEST_F(LiveRunsTest, WhatIsNoFolderOfRunsIsRefusedInOneLine) {
  const auto refusal = [](const fs::path& source) -> std::string {
    try {
      LiveRuns runs({source});
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  write_text(root_ / "file", "");
  EXPECT_NE(refusal(root_ / "nowhere").find("there is nothing"), std::string::npos);
  EXPECT_NE(refusal(root_ / "file").find("got a file"), std::string::npos);
  fs::create_directories(root_ / "step5");
  write_text(root_ / "step5" / "trainer.json", "{}");
  EXPECT_NE(refusal(root_ / "step5").find("got a checkpoint"), std::string::npos);
  EXPECT_EQ(refusal(root_), "");  // no run yet
}

TEST_F(LiveRunsTest, ProfilesOfARunByItsNumber) {
  write_fake_run(root_ / "run", {.blocks = 3, .streams = {"X", "Y"}});
  LiveRuns runs({root_ / "run"});
  while (runs.poll().more) {
  }
  const json depth = json::parse(runs.depth(1).value())["depth"];
  EXPECT_EQ(depth["steps"], json({1, 50, 100, 150, 200}));
  EXPECT_EQ(depth["sites"].size(), 6u);
  EXPECT_EQ(depth["streams"], json({"X", "Y"}));
  EXPECT_FALSE(runs.depth(2).has_value());
  EXPECT_EQ(runs.folder(1), root_ / "run");
}

}  // namespace
}  // namespace siamese::report

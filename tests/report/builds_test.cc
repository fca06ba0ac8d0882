// Runs of two builds in one table: one line says so, and their rows are marked.
#include "siamese/report/builds.h"

#include <filesystem>
#include <string>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/io/atomic_file.h"
#include "siamese/report/report.h"
#include "siamese/runs/run_info.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;

class BuildsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_builds_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    write_fake_sweep(root_, "demo",
                     {{.variant = "pre", .seed = 1}, {.variant = "pre", .seed = 2}, {.variant = "post"}});
  }
  void TearDown() override { fs::remove_all(root_); }

  // As if these builds had made the run, one after the other.
  void made_by(const FakeRun& run, const std::vector<std::string>& commits) {
    const fs::path dir = root_ / fake_run_name(run);
    runs::Notes notes;
    auto info = runs::read_run_file(dir, &notes).value();
    for (const std::string& commit : commits) {
      info.stretches.push_back({.build = {"0.3.0", commit, "", "2.13.0"}});
    }
    runs::write_run_file(dir, info);
  }

  fs::path root_;
};

TEST_F(BuildsTest, RunsOfOneBuildNeedNoWord) {
  EXPECT_EQ(builds_note(read_collection(root_)), "");  // none says
  for (const FakeRun& run :
       {FakeRun{.variant = "pre", .seed = 1}, FakeRun{.variant = "pre", .seed = 2}, FakeRun{.variant = "post"}}) {
    made_by(run, {"aaaaaaaaaaaaaa", "aaaaaaaaaaaaaa"});
  }
  EXPECT_EQ(builds_note(read_collection(root_)), "");
  EXPECT_EQ(summary_table(root_).find('^'), std::string::npos);
}

TEST_F(BuildsTest, RowsOfAnotherBuildAreMarkedAndOneLineSaysSo) {
  made_by({.variant = "pre", .seed = 1}, {"aaaaaaaaaaaaaa"});
  made_by({.variant = "pre", .seed = 2}, {"aaaaaaaaaaaaaa"});
  made_by({.variant = "post"}, {"aaaaaaaaaaaaaa", "bbbbbbbbbbbbbb"});
  const std::string table = summary_table(root_);
  EXPECT_NE(table.find("| post ^ "), std::string::npos) << table;
  EXPECT_EQ(table.find("| pre ^"), std::string::npos) << table;
  EXPECT_NE(
      table.find("\n^ not all by one build: siamese 0.3.0 (aaaaaaaaaa), LibTorch 2.13.0 (2 runs); marked: siamese "
                 "0.3.0 (aaaaaaaaaa), LibTorch 2.13.0, then siamese 0.3.0 (bbbbbbbbbb), LibTorch 2.13.0 (1 run)\n"),
      std::string::npos)
      << table;
  const std::string page = io::read_file(write_report(root_));
  EXPECT_NE(page.find("\"other_build\":true"), std::string::npos);
  EXPECT_NE(page.find("not all by one build"), std::string::npos);
}

}  // namespace
}  // namespace siamese::report

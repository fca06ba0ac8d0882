// Several runs, checkpoints and sweeps in one page, and the table as CSV.
#include "siamese/report/sources.h"

#include <filesystem>
#include <set>
#include <string>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/report/report.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;

class SourcesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_sources_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::set<std::string> variants(const std::vector<fs::path>& sources) const {
    std::set<std::string> names;
    for (const RunRecord& run : read_sources(sources).runs) names.insert(run.variant);
    return names;
  }
  // A run whose config has this line too.
  fs::path run_with(const std::string& name, const FakeRun& run, const std::string& section) const {
    write_fake_run(root_ / name, run);
    write_text(root_ / name / "config.yaml", io::read_file(root_ / name / "config.yaml") + section);
    return root_ / name;
  }

  fs::path root_;
};

TEST_F(SourcesTest, RunsOfDifferentFoldersAreOneCollection) {
  write_fake_run(root_ / "a", {.variant = "pre", .scheme = "pre"});
  write_fake_run(root_ / "b", {.variant = "siamese", .scheme = "siamese"});
  write_fake_sweep(root_ / "s", "demo",
                   {{.variant = "post", .scheme = "post"}, {.variant = "post", .scheme = "post", .seed = 2}});
  const Collection all = read_sources({root_ / "a", root_ / "b", root_ / "s"});
  EXPECT_TRUE(all.is_sweep);
  EXPECT_TRUE(all.is_comparison);
  EXPECT_EQ(all.name, "4 runs compared");
  ASSERT_EQ(all.runs.size(), 4u);
  EXPECT_EQ(all.runs[0].dir, (root_ / "a").string());
  EXPECT_EQ(all.runs[3].dir, (root_ / "s" / fake_run_name({.variant = "post", .seed = 2})).string());
  EXPECT_EQ(variants({root_ / "a", root_ / "b", root_ / "s"}), (std::set<std::string>{"pre", "siamese", "post"}));
  // Alone, each is what it was.
  EXPECT_FALSE(read_sources({root_ / "a"}).is_comparison);
  EXPECT_EQ(read_sources({root_ / "s"}).name, "demo");
}

TEST_F(SourcesTest, WhatDiffersInMoreThanTheSeedIsToldApart) {
  const auto narrow = run_with("narrow", {}, "extra: {width: 32, depth: 1}\n");
  const auto wide = run_with("wide", {.seed = 2}, "extra: {width: 64, depth: 1}\n");
  EXPECT_EQ(variants({narrow, wide}), (std::set<std::string>{"pre, width=32", "pre, width=64"}));
  // Seeds of one setting stay together, and what decides no result tells nobody apart.
  const auto again = run_with("again", {.seed = 3}, "extra: {width: 32, depth: 1}\nengine: {threads: 7}\n");
  EXPECT_EQ(variants({narrow, again}), (std::set<std::string>{"pre"}));
  // The same run twice is not two seeds.
  fs::copy(narrow, root_ / "copy", fs::copy_options::recursive);
  EXPECT_EQ(variants({narrow, root_ / "copy"}),
            (std::set<std::string>{"pre (" + narrow.string() + ")", "pre (" + (root_ / "copy").string() + ")"}));
  // Nor is one that is named twice, whatever the name.
  EXPECT_EQ(read_sources({narrow, narrow / "", root_ / "." / "narrow"}).runs.size(), 1u);
  // Many differences would make a long name.
  const auto other = run_with("other", {.seed = 4}, "extra: {width: 1, depth: 2, a: 1, b: 1}\n");
  EXPECT_EQ(variants({narrow, other}),
            (std::set<std::string>{"pre (" + narrow.string() + ")", "pre (" + other.string() + ")"}));
}

TEST_F(SourcesTest, ACheckpointIsItsRunUpToThere) {
  write_fake_run(root_ / "a", {.steps = 200, .last_step = 200, .sites_every = 50, .eval_every = 50});
  for (const char* const name : {"step100", "step200"}) {
    fs::create_directories(root_ / "a" / name);
    write_text(root_ / "a" / name / "trainer.json", "{}");
  }
  const Collection all = read_sources({root_ / "a" / "step100", root_ / "a" / "step200" / "", root_ / "a"});
  ASSERT_EQ(all.runs.size(), 3u);
  const RunRecord& half = all.runs[0];
  EXPECT_EQ(half.variant, "pre, step 100");
  EXPECT_EQ(half.step, 100);
  EXPECT_EQ(half.metrics.step.back(), 100);
  EXPECT_EQ(half.metrics.loss.size(), 100u);
  EXPECT_EQ(half.evals.back().step, 100);
  EXPECT_EQ(half.snapshots.back().step, 100);
  EXPECT_EQ(half.state, RunState::stopped);
  EXPECT_EQ(all.runs[1].state, RunState::finished);
  EXPECT_EQ(all.runs[1].variant, "pre, step 200");
  EXPECT_EQ(all.runs[2].variant, "pre");
}

TEST_F(SourcesTest, ACheckpointOutsideItsRunHasItsConfig) {
  fs::create_directories(root_ / "weights");
  write_text(root_ / "weights" / "config.yaml", "model: {residual: keel, family: vit}\n");
  write_text(root_ / "weights" / "model.safetensors", "");
  const Collection all = read_sources({root_ / "weights"});
  ASSERT_EQ(all.runs.size(), 1u);
  EXPECT_EQ(all.runs[0].variant, "keel");
  EXPECT_EQ(all.runs[0].family, "vit");
  ASSERT_EQ(all.runs[0].notes.size(), 1u);
  EXPECT_NE(all.runs[0].notes[0].find("outside its run"), std::string::npos);
}

TEST_F(SourcesTest, WhatIsNothingIsRefused) {
  write_fake_run(root_ / "a", {});
  EXPECT_THROW(read_sources({root_ / "a", root_ / "missing"}), DataError);
}

TEST_F(SourcesTest, PageAndTableGoWhereTheyAreAskedFor) {
  write_fake_run(root_ / "a", {.scheme = "pre, \"wide\"", .floor = 0.5});
  write_fake_run(root_ / "b", {.scheme = "siamese", .floor = 0.4});
  const ReportRequest request{{root_ / "a", root_ / "b"}, root_ / "c.html", root_ / "c.csv"};
  EXPECT_EQ(write_report(request), root_ / "c.html");
  EXPECT_FALSE(fs::exists(root_ / "a" / "report.html"));
  const std::string page = io::read_file(root_ / "c.html");
  EXPECT_NE(page.find("2 runs compared"), std::string::npos);
  const std::string csv = io::read_file(root_ / "c.csv");
  EXPECT_TRUE(csv.starts_with("family,variant,lr,runs,finished,diverged,val_loss,val_loss_sd,train_loss,")) << csv;
  EXPECT_NE(csv.find("\nlm,\"pre, \"\"wide\"\"\",0.002,1,1,0,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nlm,siamese,0.002,1,1,0,"), std::string::npos) << csv;
  EXPECT_EQ(results_csv(request.sources), csv);
  write_report(request);  // its own files it replaces
  EXPECT_EQ(io::read_file(root_ / "c.csv"), csv);
}

TEST_F(SourcesTest, FilesOfOthersAreNotReplaced) {
  write_fake_run(root_ / "a", {});
  write_fake_run(root_ / "b", {.scheme = "b"});
  write_text(root_ / "mine.html", "<html>my page</html>");
  write_text(root_ / "mine.csv", "name,age\n");
  EXPECT_THROW(write_report({{root_ / "a", root_ / "b"}, root_ / "mine.html", {}}), UsageError);
  EXPECT_THROW(write_report({{root_ / "a", root_ / "b"}, root_ / "page.html", root_ / "mine.csv"}), UsageError);
  EXPECT_EQ(io::read_file(root_ / "mine.html"), "<html>my page</html>");
  EXPECT_EQ(io::read_file(root_ / "mine.csv"), "name,age\n");
  EXPECT_FALSE(fs::exists(root_ / "page.html"));
}

TEST_F(SourcesTest, AveragedWeightsAreSaid) {
  const auto run = run_with("a", {}, "eval: {averaged: true}\n");
  EXPECT_TRUE(read_run(run).judges_average());
  EXPECT_NE(io::read_file(write_report(run)).find("\"averaged\":true"), std::string::npos);
  EXPECT_NE(summary_table(run).find("Evaluations are of averaged weights (eval.averaged) in 1 of 1 runs."),
            std::string::npos);
  const auto none = run_with("b", {}, "eval: {averaged: false}\n");
  EXPECT_FALSE(read_run(none).judges_average());
  EXPECT_EQ(summary_table(none).find("averaged"), std::string::npos);
}

}  // namespace
}  // namespace siamese::report

// recorded.jsonl: runs that were done elsewhere, beside those that have their folder here.
#include "siamese/report/recorded.h"

#include <cmath>
#include <filesystem>
#include <string>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/report/aggregate.h"
#include "siamese/report/downsample.h"
#include "siamese/report/page_data.h"
#include "siamese/report/reader.h"
#include "siamese/report/report.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RecordedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_recorded_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
};

// The line a trainer would have left of a run, with a curve of four stretches.
json line_of(const RunRecord& run) {
  json config = json::object();
  for (const auto& [key, text] : run.config) config[key] = text;
  const EvalRow& last = run.evals.back();
  json groups = json::array();
  for (const AccuracyGroup& group : last.groups) {
    groups.push_back(
        {{"operation", group.operation}, {"digits", group.digits}, {"correct", group.correct}, {"count", group.count}});
  }
  return {{"schema", 1},
          {"sweep", "demo"},
          {"dir", run.dir},
          {"variant", run.variant},
          {"scheme", run.scheme},
          {"lr", run.lr},
          {"seed", run.seed},
          {"status", state_text(run.state)},
          {"message", run.message},
          {"parameters", run.parameters},
          {"steps", run.step},
          {"first_loss", run.first_loss()},
          {"train_loss", run.final_train_loss()},
          {"eval_step", last.step},
          {"val_loss", last.loss},
          {"perplexity", nullptr},
          {"accuracy", {{"correct", last.correct}, {"count", last.count}, {"groups", groups}}},
          {"seconds", run.seconds()},
          {"step_ms", 100},
          {"threads", 1},
          {"cpu", "a CPU"},
          {"version", "siamese 0.1.0, LibTorch 2.13.0, AVX3 kernels"},
          {"tokens_per_s", run.median_tokens_per_s()},
          {"config", config},
          {"curve", {{"steps", {1, 2, 100, 200}}, {"loss", {4, 3, 1, 0.6}}, {"grad_norm", {2, 2, 1, 1}}}}};
}

// Fake folders do not say which build made them, record lines do: the table marks them, and is otherwise the same.
std::string without_marks(std::string table) {
  const size_t note = table.find("\n^ not all by one build");
  EXPECT_NE(note, std::string::npos) << table;
  table.resize(note);
  for (size_t at = table.find(" ^"); at != std::string::npos; at = table.find(" ^")) table.replace(at, 2, "  ");
  return table;
}

TEST_F(RecordedTest, ARunWithoutAFolderIsShownLikeTheOthers) {
  const FakeRun here{.variant = "pre", .seed = 1}, gone{.variant = "pre", .seed = 2};
  write_fake_sweep(root_, "demo", {here, gone});
  const std::string table = summary_table(root_);
  const RunRecord before = read_collection(root_).runs[1];
  write_text(root_ / "recorded.jsonl", line_of(before).dump() + "\n");
  EXPECT_FALSE(read_collection(root_).runs[1].recorded);  // its own folder says more
  fs::remove_all(root_ / fake_run_name(gone));
  const Collection sweep = read_collection(root_);
  const RunRecord& run = sweep.runs[1];
  ASSERT_TRUE(run.recorded);
  EXPECT_EQ(run.notes, std::vector<std::string>{"from the record; no run folder here"});
  EXPECT_EQ(run.state, RunState::finished);
  EXPECT_EQ(run.dir, before.dir);
  EXPECT_EQ(run.variant, "pre");
  EXPECT_EQ(run.scheme, "pre");
  EXPECT_EQ(run.seed, 2);
  EXPECT_EQ(run.lr, 0.002);
  EXPECT_EQ(run.parameters, 812345);
  EXPECT_EQ(run.step, 200);
  EXPECT_EQ(run.steps, 200);
  EXPECT_EQ(run.first_loss(), before.first_loss());
  EXPECT_EQ(run.final_val_loss(), before.final_val_loss());
  EXPECT_EQ(run.final_train_loss(), before.final_train_loss());
  EXPECT_EQ(run.final_accuracy(), before.final_accuracy());
  EXPECT_EQ(run.median_tokens_per_s(), before.median_tokens_per_s());
  EXPECT_EQ(run.seconds(), before.seconds());
  EXPECT_EQ(run.evals.back().groups.size(), 12u);
  EXPECT_EQ(without_marks(summary_table(root_)), table);
}

TEST_F(RecordedTest, ItsCurveIsDrawnWithoutGaps) {
  const FakeRun here{.seed = 1}, gone{.seed = 2};
  write_fake_sweep(root_, "demo", {here, gone});
  json line = line_of(read_collection(root_).runs[1]);
  line["curve"]["loss"][3] = nullptr;
  write_text(root_ / "recorded.jsonl", line.dump() + "\n");
  fs::remove_all(root_ / fake_run_name(gone));
  // As a newer trainer would write it: a key that record lines never have makes no difference between the runs.
  write_text(root_ / fake_run_name(here) / "config.yaml",
             io::read_file(root_ / fake_run_name(here) / "config.yaml") + "engine:\n  threads: 2\n");
  const Collection sweep = read_collection(root_);
  const json data = json::parse(page_data(sweep, group_results(sweep.runs)));
  const json& run = data["runs"][1];
  EXPECT_EQ(run["recorded"], true);
  EXPECT_EQ(data["runs"][0]["recorded"], false);
  const json& loss = run["loss"]["mean"];
  ASSERT_EQ(loss.size(), 200u);
  EXPECT_EQ(loss[0], 4);
  EXPECT_EQ(loss[1], 3);
  for (size_t at = 0; at < 100; ++at) EXPECT_TRUE(loss[at].is_number()) << at;
  EXPECT_TRUE(loss[150].is_null());  // no step of the stretch was finite
  EXPECT_EQ(run["grad_norm"]["mean"].size(), 200u);
  EXPECT_TRUE(run["grad_norm"]["mean"][150].is_number());
  EXPECT_TRUE(run["speed"]["mean"][5].is_null());
  ASSERT_EQ(data["differences"].size(), 1u) << data["differences"];
  EXPECT_EQ(data["differences"][0]["key"], "train.seed");
}

TEST_F(RecordedTest, MeasuresOfALineCountLikeThoseOfAFolder) {
  const FakeRun here{.variant = "vit", .seed = 1, .family = "vit"}, gone{.variant = "vit", .seed = 2, .family = "vit"};
  write_fake_sweep(root_, "demo", {here, gone});
  const std::string table = summary_table(root_);
  json line = line_of(read_collection(root_).runs[1]);
  line["samples_per_s"] = 200;
  line["measures"] = {{"top1", 402.0 / 512}, {"top5", 500.0 / 512}, {"mse", nullptr}, {"beauty", 3}};
  write_text(root_ / "recorded.jsonl", line.dump() + "\n");
  fs::remove_all(root_ / fake_run_name(gone));
  const RunRecord run = read_collection(root_).runs[1];
  ASSERT_TRUE(run.recorded);
  EXPECT_EQ(run.family, "vit");
  EXPECT_EQ(run.final_measures(), (Measures{{"top1", 402.0 / 512}, {"top5", 500.0 / 512}}));  // no name of its own
  EXPECT_EQ(run.evals.back().measures.at("top1"), 402.0 / 512);
  EXPECT_EQ(without_marks(summary_table(root_)), table);
}

TEST_F(RecordedTest, BitsPerByteOfALineThatLacksThem) {
  write_fake_sweep(root_, "demo", {FakeRun{}});
  json line = line_of(read_collection(root_).runs[0]);
  fs::remove_all(root_ / line["dir"].get<std::string>());
  const auto measures = [&] {
    write_text(root_ / "recorded.jsonl", line.dump() + "\n");
    return read_collection(root_).runs[0].final_measures();
  };
  line["val_loss"] = 1.5;
  EXPECT_TRUE(measures().empty());  // nobody knows what a token is
  line["config"]["data.source"] = "text";
  ASSERT_EQ(measures().count("bits_per_byte"), 1u);
  EXPECT_DOUBLE_EQ(measures().at("bits_per_byte"), 1.5 / std::log(2.0));
  line["config"]["data.mix"] = "[]";
  EXPECT_EQ(measures().size(), 1u);
  line["config"]["data.mix"] = "[web=1, books=1]";  // the loss is a mean over sets
  EXPECT_TRUE(measures().empty());
  line["measures"] = {{"web loss", 1.25}};
  EXPECT_EQ(measures(), (Measures{{"web loss", 1.25}}));
  line["config"].erase("data.mix");
  line["measures"] = {{"bits_per_byte", 2}};
  EXPECT_EQ(measures(), (Measures{{"bits_per_byte", 2}}));  // what was measured counts
  line.erase("measures");
  line["val_loss"] = nullptr;
  EXPECT_TRUE(measures().empty());
}

TEST_F(RecordedTest, ASummaryOfWhatHasEndedKnowsNoOtherRuns) {
  const FakeRun ended{.variant = "pre"}, open{.variant = "post", .last_step = 80, .status = "stopped"};
  write_fake_sweep(root_, "demo", {ended, open, FakeRun{.variant = "peri"}});
  fs::remove_all(root_ / fake_run_name(FakeRun{.variant = "peri"}));
  EXPECT_NE(summary_table(root_).find("post"), std::string::npos);
  const std::string table = summary_of_ended(root_);
  EXPECT_NE(table.find("| pre "), std::string::npos) << table;
  EXPECT_EQ(table.find("post"), std::string::npos) << table;
  EXPECT_EQ(table.find("peri"), std::string::npos) << table;
  fs::remove_all(root_ / fake_run_name(ended));
  EXPECT_EQ(summary_of_ended(root_), "");
}

TEST_F(RecordedTest, AFolderThatHasNotEndedGivesWay) {
  write_fake_sweep(root_, "demo", {FakeRun{}});
  const RunRecord ended = read_collection(root_).runs[0];
  write_text(root_ / "recorded.jsonl", line_of(ended).dump() + "\n");
  write_fake_run(root_ / ended.dir, {.last_step = 80, .status = "stopped"});
  const RunRecord run = read_collection(root_).runs[0];
  EXPECT_EQ(run.state, RunState::finished);
  EXPECT_EQ(run.final_val_loss(), ended.final_val_loss());
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("from the record"), std::string::npos);
}

TEST_F(RecordedTest, ABrokenLineIsNamed) {
  write_fake_sweep(root_, "demo", {FakeRun{}});
  const json good = line_of(read_collection(root_).runs[0]);
  const auto said = [&](const std::string& second) -> std::string {
    write_text(root_ / "recorded.jsonl", good.dump() + "\n" + second + "\n");
    try {
      read_collection(root_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said(good.dump()), "");
  EXPECT_NE(said("broken").find("recorded.jsonl: line 2"), std::string::npos);
  for (const auto& [key, value] : {std::pair{"schema", json(3)}, std::pair{"status", json("running")},
                                   std::pair{"dir", json(7)}, std::pair{"curve", json{{"steps", {2, 1}}}}}) {
    json bad = good;
    bad[key] = value;
    EXPECT_NE(said(bad.dump()).find(std::string("line 2: ") + key), std::string::npos) << said(bad.dump());
  }
}

TEST(SpreadOverGrid, StraightLinesBetweenTheMiddles) {
  const StepGrid grid(10);
  // Stretches 1, 2-4, 5-7, 8-10 with middles 1, 3, 6, 9.
  const auto values = spread_over_grid(grid, {1, 4, 7, 10}, {5, 3, 6, 3});
  EXPECT_EQ(values, (std::vector<double>{5, 4, 3, 4, 5, 6, 5, 4, 3, 3}));
  const auto holed = spread_over_grid(grid, {1, 4, 7}, {5, kMissing, 6});
  ASSERT_EQ(holed.size(), 7u);  // the run's own end
  EXPECT_EQ(holed[0], 5);
  for (size_t at : {1, 2, 3}) EXPECT_TRUE(std::isnan(holed[at])) << at;
  for (size_t at : {4, 5, 6}) EXPECT_EQ(holed[at], 6) << at;
  EXPECT_TRUE(spread_over_grid(grid, {}, {}).empty());
}

TEST(SpreadOverGrid, LongRuns) {
  const StepGrid grid(100000);
  const auto values = spread_over_grid(grid, {10, 50000, 100000}, {3, 2, 1});
  EXPECT_EQ(static_cast<int64_t>(values.size()), grid.size());
  for (size_t at = 1; at < values.size(); ++at) ASSERT_LE(values[at], values[at - 1]) << at;
}

}  // namespace
}  // namespace siamese::report

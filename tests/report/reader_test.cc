// Folders as they are left by trainers that were killed, have just begun, or never did.
#include "siamese/report/reader.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/report/report.h"
#include "siamese/report/step_reader.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;

class ReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_reader_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
};

void append_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

TEST_F(ReaderTest, ReadsARun) {
  write_fake_run(root_ / "run", {.scheme = "siamese", .streams = {"X", "Y"}});
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.state, RunState::finished);
  EXPECT_EQ(run.scheme, "siamese");
  EXPECT_EQ(run.variant, "siamese");
  EXPECT_EQ(run.parameters, 812345);
  EXPECT_EQ(run.metrics.step.size(), 200u);
  ASSERT_EQ(run.snapshots.size(), 5u);  // steps 1, 50, 100, 150, 200
  ASSERT_EQ(run.snapshots[0].sites.size(), 4u);
  EXPECT_EQ(run.snapshots[0].sites[3].kind, "ffn");
  EXPECT_EQ(run.snapshots[0].sites[1].streams[1].name, "Y");
  EXPECT_TRUE(std::isnan(run.snapshots[0].sites[1].streams[1].after));
  EXPECT_EQ(run.evals.size(), 4u);
  EXPECT_EQ(run.evals[0].groups.size(), 12u);
  EXPECT_FALSE(run.config.empty());
  EXPECT_TRUE(run.notes.empty());
  EXPECT_NEAR(run.median_tokens_per_s(), 31000, 1000);
}

TEST_F(ReaderTest, AHalfWrittenLastLineIsANote) {
  write_fake_run(root_ / "run", {});
  append_text(root_ / "run" / "metrics.jsonl", "{\"schema\":1,\"step\":201,\"lo");
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.step.size(), 200u);
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("metrics.jsonl: line 201: half-written"), std::string::npos) << run.notes[0];
}

TEST_F(ReaderTest, ADamagedLineIsLeftOutAndTheOthersStay) {
  runs::StepRecord record;
  std::string text;
  for (record.step = 1; record.step <= 3; ++record.step) {
    record.loss = 1.5;
    text += runs::to_line(record) + "\n";
  }
  const size_t second = text.find("1.5", text.find('\n'));
  text.replace(second, 3, "9.5");
  fs::create_directories(root_ / "run");
  write_text(root_ / "run" / "metrics.jsonl", text);
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.step, (std::vector<int64_t>{1, 3}));
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("metrics.jsonl: line 2: checksum"), std::string::npos) << run.notes[0];
}

TEST_F(ReaderTest, DamageBecomesANoteThatNamesTheFile) {
  write_fake_run(root_ / "run", {});
  append_text(root_ / "run" / "eval.jsonl", "not json\n{\"step\":1}\n");
  write_text(root_ / "run" / "run.json", "{\"status\":");
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.step.size(), 200u);
  EXPECT_EQ(run.state, RunState::unknown);
  ASSERT_EQ(run.notes.size(), 2u);
  EXPECT_NE(run.notes[0].find("eval.jsonl"), std::string::npos) << run.notes[0];
  EXPECT_NE(run.notes[1].find("run.json"), std::string::npos) << run.notes[1];
}

TEST_F(ReaderTest, RepeatedStepsAfterAResumeReplaceTheOlder) {
  fs::create_directories(root_ / "run");
  write_text(root_ / "run" / "metrics.jsonl",
             "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":9}\n{\"step\":2,\"loss\":1.5}\n");
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.step, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(run.metrics.loss.back(), 1.5);
  EXPECT_EQ(run.step, 2);
}

TEST_F(ReaderTest, SkippedStepsAreCountedByReason) {
  const std::string lines = R"({"step": 1, "loss": 2, "skipped": false}
{"step": 2, "loss": null, "skipped": true}
{"step": 3, "loss": null, "skipped": true, "skip_reason": "non_finite"}
{"step": 4, "loss": 90, "skipped": true, "skip_reason": "loss", "skip_z": 7.5}
{"step": 5, "loss": 2, "skipped": true, "skip_reason": "grad_norm", "skip_z": 8.5}
{"step": 6, "loss": 2, "skipped": false, "skip_reason": "loss"}
)";
  fs::create_directories(root_ / "run");
  write_text(root_ / "run" / "metrics.jsonl", lines);
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.skipped, 4);
  EXPECT_EQ(run.metrics.outliers, 2);
}

TEST_F(ReaderTest, NullAndForeignValuesAreMissingAndNoted) {
  fs::create_directories(root_ / "run");
  write_text(root_ / "run" / "metrics.jsonl",
             "{\"step\":1,\"loss\":null,\"grad_norm\":\"big\",\"sites\":[{\"streams\":[7]},3]}\n{\"loss\":1}\n");
  const RunRecord run = read_run(root_ / "run");
  ASSERT_EQ(run.metrics.step.size(), 1u);  // a line without a step belongs to no curve
  EXPECT_TRUE(std::isnan(run.metrics.loss[0]));
  EXPECT_TRUE(std::isnan(run.metrics.grad_norm[0]));
  ASSERT_EQ(run.snapshots.size(), 1u);
  EXPECT_EQ(run.snapshots[0].sites.size(), 1u);
  ASSERT_EQ(run.notes.size(), 2u);
  EXPECT_NE(run.notes[0].find("metrics.jsonl: line 1: grad_norm: expected a number"), std::string::npos)
      << run.notes[0];
  EXPECT_NE(run.notes[1].find("3 more such places"), std::string::npos) << run.notes[1];
}

TEST_F(ReaderTest, SnapshotsAreThinnedAndTheLastStays) {
  write_fake_run(root_ / "run", {.steps = 997, .last_step = 997, .blocks = 1, .sites_every = 3});
  const RunRecord run = read_run(root_ / "run");
  EXPECT_LE(run.snapshots.size(), static_cast<size_t>(kSnapshotLimit + 1));
  EXPECT_GE(run.snapshots.size(), 30u);
  EXPECT_EQ(run.snapshots.front().step, 1);
  EXPECT_EQ(run.snapshots.back().step, 996);
}

TEST_F(ReaderTest, AMissingFolderHasNotStarted) {
  const RunRecord run = read_run(root_ / "nowhere");
  EXPECT_EQ(run.state, RunState::not_started);
  EXPECT_TRUE(std::isnan(run.final_val_loss()));
  EXPECT_TRUE(std::isnan(run.final_train_loss()));
  EXPECT_TRUE(std::isnan(run.median_tokens_per_s()));
}

TEST_F(ReaderTest, SweepNamesItsRuns) {
  FakeRun present{.variant = "pre, attention_norm=qkv", .lr = 0.004, .seed = 7};
  FakeRun absent{.variant = "siamese", .last_step = 0};
  write_fake_sweep(root_ / "sweep", "demo", {present, absent});
  const Collection sweep = read_collection(root_ / "sweep");
  EXPECT_TRUE(sweep.is_sweep);
  EXPECT_EQ(sweep.name, "demo");
  ASSERT_EQ(sweep.runs.size(), 2u);
  EXPECT_EQ(sweep.runs[0].variant, "pre, attention_norm=qkv");
  EXPECT_EQ(sweep.runs[0].lr, 0.004);
  EXPECT_EQ(sweep.runs[0].seed, 7);
  EXPECT_EQ(sweep.runs[1].state, RunState::not_started);
  EXPECT_NE(summary_table(root_ / "sweep").find("attention_norm=qkv"), std::string::npos);
}

TEST_F(ReaderTest, RefusesWhatIsNeitherRunNorSweep) {
  EXPECT_THROW(write_report(root_), DataError);
  EXPECT_THROW(write_report(root_ / "nowhere"), DataError);
  write_text(root_ / "config.yaml", "a: 1\n");
  write_text(root_ / "trainer.json", "{}");  // a checkpoint
  EXPECT_THROW(write_report(root_), DataError);
  for (const char* bad : {"{\"runs\":", "[]", "{\"name\":\"x\"}", "{\"runs\":7}", "{\"runs\":{}}",
                          "{\"runs\":[{\"variant\":\"pre\"}]}"}) {
    write_text(root_ / "sweep.json", bad);
    EXPECT_THROW(write_report(root_), DataError) << bad;
  }
}

// 200,000 deep: a tree of it could not even be destroyed.
TEST_F(ReaderTest, WhatIsNestedTooDeepIsNamed) {
  const std::string deep = "{\"a\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  write_fake_run(root_ / "run", {});
  append_text(root_ / "run" / "metrics.jsonl", deep + "\n");
  append_text(root_ / "run" / "eval.jsonl", deep + "\n");
  write_text(root_ / "run" / "run.json", deep);
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.step.size(), 200u);
  ASSERT_EQ(run.notes.size(), 3u);
  for (const std::string& note : run.notes) EXPECT_NE(note.find("at most 32 deep"), std::string::npos) << note;
  EXPECT_NE(run.notes[0].find("metrics.jsonl: line 201"), std::string::npos) << run.notes[0];
  write_text(root_ / "sweep.json", deep);
  EXPECT_THROW(write_report(root_), DataError);
  write_text(root_ / "sweep.json", "{\"runs\":[{\"dir\":\"run\"}]}");
  write_text(root_ / "recorded.jsonl", deep + "\n");
  EXPECT_THROW(write_report(root_), DataError);
}

TEST_F(ReaderTest, ALineOfThousandsOfStreamsKeepsThePageSmall) {
  write_fake_run(root_ / "run", {.streams = {"X", "Y"}});
  std::string sites;
  for (int site = 0; site < 200; ++site) {
    sites += (site > 0 ? "," : "") + std::string("{\"block\":0,\"kind\":\"ffn\",\"streams\":[");
    for (int i = 0; i < 100; ++i) {
      sites += (i > 0 ? "," : "") + ("{\"name\":\"s" + std::to_string(site * 100 + i)) + "\",\"before\":1,\"after\":1}";
    }
    sites += "]}";
  }
  append_text(root_ / "run" / "metrics.jsonl", "{\"step\":201,\"loss\":1,\"sites\":[" + sites + "]}\n");
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.snapshots.front().sites.front().streams.size(), 2u);
  ASSERT_EQ(run.snapshots.back().sites.size(), 200u);
  EXPECT_EQ(run.snapshots.back().sites[0].streams.size(), 62u);  // 64 names with X and Y
  EXPECT_TRUE(run.snapshots.back().sites[1].streams.empty());
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("at most 64 names of streams"), std::string::npos) << run.notes[0];
  const fs::path page = write_report(root_ / "run");
  EXPECT_LT(fs::file_size(page), 4'000'000u);
}

}  // namespace
}  // namespace siamese::report

// Pictures named by a run folder that may come from anyone.
#include "siamese/report/sample_grids.h"

#include <filesystem>
#include <string>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/io/atomic_file.h"
#include "siamese/report/aggregate.h"
#include "siamese/report/base64.h"
#include "siamese/report/page_data.h"
#include "siamese/report/report.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Signature and header of a PNG, padded to `size` bytes: as much of one as the reader looks at.
std::string png_of(uint32_t width, uint32_t height, size_t size = 60) {
  std::string bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (uint32_t value : {width, height}) {
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 255);
  }
  bytes.resize(size, 'x');
  return bytes;
}

class SampleGridsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_grids_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "run" / "samples");
    write_text(root_ / "outside.png", png_of(8, 8));
  }
  void TearDown() override { fs::remove_all(root_); }

  // The run folder with one evaluation that names this picture, its grids loaded.
  Collection load(const std::string& grid) {
    write_text(root_ / "run" / "eval.jsonl", json{{"step", 7}, {"samples", {{"grid", grid}}}}.dump() + "\n");
    write_text(root_ / "run" / "run.json", R"({"status": "finished"})");
    Collection collection = read_collection(root_ / "run");
    load_sample_grids(collection);
    return collection;
  }

  void expect_note(const std::string& grid, const std::string& words) {
    const Collection collection = load(grid);
    const RunRecord& run = collection.runs[0];
    EXPECT_TRUE(run.evals[0].samples->png.empty()) << grid;
    ASSERT_EQ(run.notes.size(), 1u) << grid;
    EXPECT_NE(run.notes[0].find("step 7: samples: grid '" + grid + "': "), std::string::npos) << run.notes[0];
    EXPECT_NE(run.notes[0].find(words), std::string::npos) << run.notes[0];
  }

  fs::path root_;
};

TEST(Base64, AsTheStandardSays) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xFF\xFE\xFB"), "//77");
}

TEST_F(SampleGridsTest, StandInThePage) {
  const std::string picture = png_of(64, 32);
  write_text(root_ / "run" / "samples" / "a.png", picture);
  const Collection collection = load("samples/a.png");
  EXPECT_TRUE(collection.runs[0].notes.empty());
  EXPECT_EQ(collection.runs[0].evals[0].samples->png, picture);
  const json data = json::parse(page_data(collection, group_results(collection.runs)));
  EXPECT_EQ(data["runs"][0]["evals"][0]["samples"]["grid"], "data:image/png;base64," + base64(picture));
  EXPECT_EQ(data["grids_left_out"], 0);
  EXPECT_NE(io::read_file(write_report(root_ / "run")).find(base64(picture)), std::string::npos);
}

TEST_F(SampleGridsTest, NothingOutsideTheRunFolderIsRead) {
  const fs::path samples = root_ / "run" / "samples";
  fs::create_symlink(root_ / "outside.png", samples / "link.png");
  fs::create_directory_symlink(root_, samples / "up");
  expect_note("../outside.png", "inside the run folder");
  expect_note("../nothing.png", "inside the run folder");  // not even whether it exists
  expect_note("samples/../../outside.png", "inside the run folder");
  expect_note((root_ / "outside.png").string(), "inside the run folder");
  expect_note("samples/link.png", "inside the run folder");
  expect_note("samples/up/outside.png", "inside the run folder");
}

TEST_F(SampleGridsTest, OnlyAPngOfUsualSizeIsRead) {
  const fs::path samples = root_ / "run" / "samples";
  write_text(samples / "text.png", "<svg onload=alert(1)>" + std::string(60, ' '));
  write_text(samples / "short.png", png_of(8, 8, 20));
  write_text(samples / "wide.png", png_of(8193, 8));
  write_text(samples / "flat.png", png_of(8, 0));
  write_text(samples / "heavy.png", png_of(8, 8, (4u << 20) + 1));
  write_text(samples / "full.png", png_of(8192, 8192, 4u << 20));
  expect_note("samples/missing.png", "no such file");
  expect_note("samples", "expected a PNG file");
  expect_note("samples/text.png", "expected a PNG file");
  expect_note("samples/short.png", "expected a PNG file");
  expect_note("samples/wide.png", "got 8193 x 8");
  expect_note("samples/flat.png", "got 8 x 0");
  expect_note("samples/heavy.png", "at most 4 MB");
  EXPECT_TRUE(load("samples/full.png").runs[0].notes.empty());
}

TEST_F(SampleGridsTest, OlderOnesAreLeftOutOfALargePage) {
  const FakeRun one{.variant = "a", .family = "dit"}, two{.variant = "b", .family = "dit"};
  write_fake_sweep(root_ / "sweep", "demo", {one, two});
  for (const FakeRun& run : {one, two}) {
    fs::create_directories(root_ / "sweep" / fake_run_name(run) / "samples");
    for (int step : {50, 100, 150, 200}) {
      write_text(root_ / "sweep" / fake_run_name(run) / "samples" / ("step" + std::to_string(step) + ".png"),
                 png_of(8, 8));
    }
  }
  Collection sweep = read_collection(root_ / "sweep");
  load_sample_grids(sweep, 5 * 80);  // 60 bytes are 80 in base64
  const auto kept = [](const RunRecord& run) {
    std::vector<int64_t> steps;
    for (const EvalRow& row : run.evals) {
      if (!row.samples->png.empty()) steps.push_back(row.step);
    }
    return steps;
  };
  EXPECT_EQ(kept(sweep.runs[0]), (std::vector<int64_t>{100, 150, 200}));
  EXPECT_EQ(kept(sweep.runs[1]), (std::vector<int64_t>{150, 200}));
  EXPECT_EQ(sweep.grids_left_out, 3u);
  EXPECT_TRUE(sweep.runs[0].notes.empty());
}

}  // namespace
}  // namespace siamese::report

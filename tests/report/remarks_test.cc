// What stands beside the results: other data under the same names, files that could not be read.
#include "siamese/report/remarks.h"

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

class RemarksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_remarks_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    write_fake_sweep(root_, "demo", {first_, second_, third_});
  }
  void TearDown() override { fs::remove_all(root_); }

  void trained_on(const FakeRun& run, uint64_t hash) const {
    const fs::path dir = root_ / fake_run_name(run);
    runs::Notes notes;
    auto info = runs::read_run_file(dir, &notes).value();
    info.data.train = {.files = 1, .bytes = 100, .hash = hash};
    runs::write_run_file(dir, info);
  }

  const FakeRun first_{.variant = "pre", .seed = 1};
  const FakeRun second_{.variant = "pre", .seed = 2};
  const FakeRun third_{.variant = "post"};
  fs::path root_;
};

TEST_F(RemarksTest, OtherDataUnderTheSameNamesIsSaid) {
  for (const FakeRun& run : {first_, second_, third_}) trained_on(run, 7);
  EXPECT_EQ(data_note(read_collection(root_)), "");
  EXPECT_TRUE(remarks(read_collection(root_)).empty());
  trained_on(second_, 8);
  const std::string note =
      "not all from the same data: where their configs name the same files, these held something else for one run: " +
      fake_run_name(second_);
  EXPECT_EQ(data_note(read_collection(root_)), note);
  EXPECT_NE(summary_table(root_).find(note), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(results_line({root_}))["remarks"][0], note);
  EXPECT_NE(report_page({root_}).find(note), std::string::npos);
  // A config that names other data is another matter.
  const fs::path config = root_ / fake_run_name(second_) / "config.yaml";
  write_text(config, io::read_file(config) + "data: {train: [other]}\n");
  EXPECT_EQ(data_note(read_collection(root_)), "");
}

TEST_F(RemarksTest, OtherHeldOutTargetsAreSaid) {
  FakeRun one = first_, other = third_;
  one.baseline = 2.5;
  other.baseline = 2.25;
  fs::remove_all(root_);
  write_fake_sweep(root_, "demo", {one, other});
  const std::string note =
      "not all judged on the same held-out targets, so that losses of lm are not comparable: the best constant "
      "prediction "
      "has a loss of 2.5000 for " +
      fake_run_name(one) + "; 2.2500 for " + fake_run_name(other);
  EXPECT_EQ(targets_note(read_collection(root_)), note);
  EXPECT_NE(summary_table(root_).find(note), std::string::npos);
  other.baseline = 2.5;
  write_fake_sweep(root_, "demo", {one, other});
  EXPECT_EQ(targets_note(read_collection(root_)), "");
}

TEST_F(RemarksTest, ADamagedLineIsSaid) {
  const fs::path file = root_ / fake_run_name(first_) / "eval.jsonl";
  std::string text = io::read_file(file);
  text[text.rfind("\"loss\"")] = 'x';
  write_text(file, text);
  const auto lines = remarks(read_collection(root_));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find(fake_run_name(first_) + ": not read whole: " + file.string()), 0u) << lines[0];
  EXPECT_NE(summary_table(root_).find("not read whole"), std::string::npos);
  std::vector<std::string> said;
  results_csv({root_}, &said);
  EXPECT_EQ(said, lines);
}

}  // namespace
}  // namespace siamese::report

#include "siamese/io/run_dir.h"

#include <algorithm>

#include "tests/io/support.h"

#include "siamese/io/atomic_file.h"

namespace siamese::io {
namespace {

class RunDirTest : public InFolder {
 protected:
  void put_checkpoint(const std::string& name, CheckpointUse use = CheckpointUse::resume) const {
    put(name + "/config.yaml", "");
    put(name + "/model.safetensors", "");
    if (use == CheckpointUse::weights) return;
    put(name + "/optim.safetensors", "");
    put(name + "/trainer.json", "");
  }
};

TEST(CheckpointName, RoundTrips) {
  for (const int64_t step : {int64_t{0}, int64_t{7}, int64_t{500}, INT64_MAX}) {
    EXPECT_EQ(checkpoint_step(checkpoint_name(step)), step);
  }
  EXPECT_EQ(checkpoint_name(500), "step500");
  for (const auto* other : {"", "step", "step-1", "step+1", "step05", "step5x", "step5.tmp-12", "Step5", " step5",
                            "step99999999999999999999"}) {
    EXPECT_EQ(checkpoint_step(other), std::nullopt) << other;
  }
}

TEST_F(RunDirTest, LatestRoundTrips) {
  EXPECT_EQ(read_latest(folder_), std::nullopt);
  write_latest(folder_, "step500");
  EXPECT_EQ(read_file(folder_ / "latest"), "step500\n");
  EXPECT_EQ(read_latest(folder_), "step500");
  write_latest(folder_, "step1000");
  EXPECT_EQ(read_latest(folder_), "step1000");
  EXPECT_EQ(names(), std::vector<std::string>{"latest"});
}

TEST_F(RunDirTest, LatestHoldsANameAndNothingElse) {
  for (const std::string bad : {"", "../other/step5", "step5\nstep6", "/etc"}) {
    put("latest", bad);
    expect_error<DataError>([&] { read_latest(folder_); }, {(folder_ / "latest").string(), "such as step500"});
  }
}

TEST_F(RunDirTest, ListsCompleteCheckpointsInOrder) {
  EXPECT_TRUE(list_checkpoints(folder_ / "missing").empty());
  for (const auto* name : {"step1000", "step20", "step3", "step30.tmp-12", "stepx"}) put_checkpoint(name);
  put_checkpoint("step40", CheckpointUse::weights);
  put("step50/model.safetensors", "");
  put("step60", "a file");
  EXPECT_EQ(list_checkpoints(folder_), (std::vector<int64_t>{3, 20, 1000}));
}

TEST_F(RunDirTest, ToResumeACheckpointNeedsWhatItsStateNames) {
  put_checkpoint("step5");
  put("step5/trainer.json", R"({"format": 1, "files": ["ema.safetensors"]})");
  EXPECT_TRUE(list_checkpoints(folder_).empty());
  EXPECT_TRUE(missing_files(folder_ / "step5", CheckpointUse::weights).empty());
  expect_error<DataError>([&] { resolve_checkpoint(folder_ / "step5", CheckpointUse::resume); },
                          {"step5", "missing ema.safetensors"});
  put("step5/ema.safetensors", "");
  EXPECT_EQ(list_checkpoints(folder_), std::vector<int64_t>{5});
  // What is wrong with the rest of it is said by whoever reads it.
  for (const std::string odd : {"", "{", "[]", R"({"files": 7})", R"({"files": [7, {}]})"}) {
    put("step5/trainer.json", odd);
    EXPECT_TRUE(missing_files(folder_ / "step5", CheckpointUse::resume).empty()) << odd;
  }
}

TEST_F(RunDirTest, ResolvesARunToItsLatest) {
  put_checkpoint("step5");
  put_checkpoint("step10");
  EXPECT_EQ(resolve_checkpoint(folder_), folder_ / "step10");  // killed before the first `latest`
  write_latest(folder_, "step5");
  EXPECT_EQ(resolve_checkpoint(folder_), folder_ / "step5");
  EXPECT_EQ(resolve_checkpoint(folder_ / "step10"), folder_ / "step10");
}

TEST_F(RunDirTest, SaysWhatIsMissing) {
  expect_error<DataError>([&] { resolve_checkpoint(folder_ / "none"); }, {"none", "nothing there"});
  expect_error<DataError>([&] { resolve_checkpoint(put("file", "x")); }, {"file", "got a file"});
  expect_error<DataError>([&] { resolve_checkpoint(folder_); }, {folder_.string(), "no checkpoint", "latest"});

  put("latest", "step7\n");
  expect_error<DataError>([&] { resolve_checkpoint(folder_); }, {folder_.string(), "step7", "is missing"});
  put("step7/config.yaml", "");
  expect_error<DataError>([&] { resolve_checkpoint(folder_); }, {"step7", "missing model.safetensors"});

  put("bare/model.safetensors", "");
  expect_error<DataError>([&] { resolve_checkpoint(folder_ / "bare"); }, {"bare", "missing config.yaml"});

  put_checkpoint("weights", CheckpointUse::weights);
  EXPECT_EQ(resolve_checkpoint(folder_ / "weights"), folder_ / "weights");
  expect_error<DataError>([&] { resolve_checkpoint(folder_ / "weights", CheckpointUse::resume); },
                          {"weights", "missing optim.safetensors, trainer.json"});
}

}  // namespace
}  // namespace siamese::io

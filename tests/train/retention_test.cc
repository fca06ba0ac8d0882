// Which checkpoints stay, whatever came in between; and what becomes of a run that is resumed with other files.
#include "siamese/train/retention.h"

#include <set>

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/io/run_dir.h"

namespace siamese::train {
namespace retention_test {

namespace fs = std::filesystem;

using Steps = std::vector<int64_t>;

TEST(Retention, KeepsTheNewestAndTheMultiples) {
  const TemporaryFolder folder("retention");
  const auto kept = [&](int64_t latest, int64_t keep_last, int64_t keep_every) {
    const fs::path run = folder / "run";
    fs::remove_all(run);
    for (const int64_t step : {2, 4, 6, 8, 10, 12}) {
      for (const char* const file : {"config.yaml", "model.safetensors", "optim.safetensors", "trainer.json"}) {
        fs::create_directories(run / io::checkpoint_name(step));
        io::write_file_atomic(run / io::checkpoint_name(step) / file, "{}");
      }
    }
    io::write_latest(run, io::checkpoint_name(latest));
    remove_old_checkpoints(run, keep_last, keep_every);
    EXPECT_EQ(io::read_latest(run), io::checkpoint_name(latest));
    return io::list_checkpoints(run);
  };
  EXPECT_EQ(kept(12, 0, 0), (Steps{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(kept(12, 0, 4), (Steps{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(kept(12, 1, 0), (Steps{12}));
  EXPECT_EQ(kept(12, 2, 0), (Steps{10, 12}));
  EXPECT_EQ(kept(12, 2, 4), (Steps{4, 8, 10, 12}));
  EXPECT_EQ(kept(12, 99, 0), (Steps{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(kept(6, 1, 0), (Steps{6, 8, 10, 12}));  // gone back to step 6: the later ones are written anew
  EXPECT_EQ(kept(6, 2, 0), (Steps{4, 6, 8, 10, 12}));
}

RunConfig keeping() { return tiny_config({"train.checkpoint_every=2", "train.keep_last=2", "train.keep_every=6"}); }

TEST(Retention, ARunKeepsWhatItsConfigSays) {
  const TemporaryFolder folder("keeping");
  start_run(keeping(), folder / "whole", false, "", {});
  EXPECT_EQ(io::list_checkpoints(folder / "whole"), (Steps{6, 10, 12}));
  // Killed after the last checkpoint, before the old ones were removed.
  start_run(tiny_config({"train.checkpoint_every=2"}), folder / "killed", false, "", {});
  io::write_file_atomic(folder / "killed" / "config.yaml", config_text(keeping()));
  fs::rename(folder / "killed" / "step4", folder / "killed" / "step4.tmp-999999");
  ASSERT_EQ(resume_run(folder / "killed", {}).status, RunStatus::finished);
  EXPECT_EQ(io::list_checkpoints(folder / "killed"), (Steps{6, 10, 12}));
  EXPECT_FALSE(fs::exists(folder / "killed" / "step4.tmp-999999"));
  expect_same_runs(folder / "whole", folder / "killed", 12);
}

// Killed between a checkpoint and the removal of older ones: whatever stood there then, the end is the same.
TEST(Retention, AResumedRunKeepsTheSame) {
  const TemporaryFolder folder("kept");
  start_run(keeping(), folder / "whole", false, "", {});
  start_run(keeping(), folder / "killed", false, "", stop_after(8));
  start_run(tiny_config({"train.checkpoint_every=2"}), folder / "all", false, "", {});
  fs::copy(folder / "all" / "step2", folder / "killed" / "step2");
  fs::copy(folder / "all" / "step4", folder / "killed" / "step4");
  ASSERT_EQ(resume_run(folder / "killed", {}).status, RunStatus::finished);
  EXPECT_EQ(io::list_checkpoints(folder / "killed"), (Steps{6, 10, 12}));
  expect_same_runs(folder / "whole", folder / "killed", 12);
}

struct Heard : Observer {
  void warned(const std::string& message) override { warnings.push_back(message); }
  std::vector<std::string> warnings;
};

// A folder that no checkpoint can replace is as good as a full disk.
TEST(Retention, ASaveThatFailsLeavesTheRunGoing) {
  const TemporaryFolder folder("blocked");
  Heard heard;
  int steps = 0;
  const fs::path run = folder / "run";
  const RunHooks hooks{&heard, [&] {
                         if (++steps == 6) io::write_file_atomic(run / "step8", "a file");
                         if (steps == 9) fs::remove(run / "step8");
                         return 0;
                       }};
  ASSERT_EQ(start_run(tiny_config(), run, false, "", hooks).status, RunStatus::finished);
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("step 8: not saved: cannot replace"), std::string::npos) << heard.warnings[0];
  EXPECT_NE(heard.warnings[0].find("training goes on; the last good checkpoint is step4"), std::string::npos);
  EXPECT_EQ(io::list_checkpoints(run), (Steps{4, 12}));
}

TEST(Retention, ALastSaveThatFailsNamesTheLastGoodOne) {
  const TemporaryFolder folder("last");
  const fs::path run = folder / "run";
  const RunHooks hooks{nullptr, [&] {
                         if (!fs::exists(run / "step12")) io::write_file_atomic(run / "step12", "a file");
                         return 0;
                       }};
  try {
    start_run(tiny_config(), run, false, "", hooks);
    FAIL() << "finished";
  } catch (const SystemError& error) {
    EXPECT_NE(
        std::string(error.what()).find("the last good checkpoint is step8; go on with: siamese resume " + run.string()),
        std::string::npos)
        << error.what();
  }
  EXPECT_EQ(run_status(run), RunStatus::stopped);
  fs::remove(run / "step12");
  ASSERT_EQ(resume_run(run, {}).status, RunStatus::finished);
  start_run(tiny_config(), folder / "whole", false, "", {});
  expect_same_runs(folder / "whole", run, 12);
}

// An evaluation that could not be written is made again, and its step is recorded once.
TEST(Retention, AnEvaluationThatCouldNotBeRecordedIsMadeAgain) {
  const TemporaryFolder folder("unrecorded");
  const RunConfig config = tiny_family("dit");
  start_run(config, folder / "whole", false, "", {});
  const fs::path run = folder / "run";
  int steps = 0;
  const RunHooks hooks{nullptr, [&] {
                         if (++steps == 7) {
                           fs::rename(run / "samples", run / "aside");
                           io::write_file_atomic(run / "samples", "in the way of the picture");
                         }
                         return 0;
                       }};
  EXPECT_THROW(start_run(config, run, false, "", hooks), SystemError);
  EXPECT_EQ(io::read_latest(run), "step10");
  EXPECT_NE(io::read_file(run / "step10" / "trainer.json").find("unrecorded"), std::string::npos);
  fs::remove(run / "samples");
  fs::rename(run / "aside", run / "samples");
  ASSERT_EQ(resume_run(run, {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", run, 12);
  EXPECT_EQ(io::read_file(run / "step10" / "trainer.json").find("unrecorded"), std::string::npos);
}

TEST(Retention, AStateOfAnOlderVersionResumes) {
  const TemporaryFolder folder("older_state");
  const RunConfig config = tiny_family("vit");
  start_run(config, folder / "whole", false, "", {});
  start_run(config, folder / "old", false, "", stop_after(5));
  const fs::path state = folder / "old" / "step5" / "trainer.json";
  auto json = nlohmann::json::parse(io::read_file(state));
  ASSERT_EQ(json.erase("files"), 1U);
  ASSERT_EQ(json.size(), 6U);
  io::write_file_atomic(state, json.dump());
  ASSERT_EQ(resume_run(folder / "old", {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", folder / "old", 12);
}

TEST(Retention, AveragedWeightsBelongToACheckpoint) {
  const TemporaryFolder folder("averaged");
  start_run(tiny_family("vit"), folder / "run", false, "", stop_after(5));
  fs::remove(folder / "run" / "step5" / "ema.safetensors");
  EXPECT_EQ(io::list_checkpoints(folder / "run"), (Steps{4}));
  try {
    resume_run(folder / "run", {});
    FAIL() << "resumed";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("step5: incomplete checkpoint: missing ema.safetensors"),
              std::string::npos)
        << error.what();
  }
}

TEST(Retention, ALimitOfHoursIsNotASignal) {
  const TemporaryFolder folder("hours");
  const RunResult result = start_run(tiny_config({"train.max_hours=1e-9"}), folder / "run", false, "", {});
  EXPECT_EQ(result.status, RunStatus::stopped);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(io::read_latest(folder / "run"), "step1");
  RunHooks long_ago;
  long_ago.begun -= std::chrono::hours(5);
  const auto limited = [](const char* hours) { return tiny_config({std::string("train.max_hours=") + hours}); };
  EXPECT_EQ(start_run(limited("6"), folder / "six", false, "", long_ago).status, RunStatus::finished);
  EXPECT_EQ(start_run(limited("5"), folder / "five", false, "", long_ago).status, RunStatus::stopped);
}

}  // namespace retention_test
}  // namespace siamese::train

#include "siamese/train/retention.h"

#include "tests/train/tiny_run.h"

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
  fs::rename(folder / "killed" / "step4", io::aside_name(folder / "killed" / "step4", io::Aside::writing));
  ASSERT_EQ(resume_run(folder / "killed", {}).status, RunStatus::finished);
  EXPECT_EQ(io::list_checkpoints(folder / "killed"), (Steps{6, 10, 12}));
  for (const auto& entry : fs::directory_iterator(folder / "killed")) {
    EXPECT_FALSE(io::is_aside_name(entry.path().filename().string())) << entry.path();
  }
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

}  // namespace retention_test
}  // namespace siamese::train

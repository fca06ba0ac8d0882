// Checkpoints that are written while training goes on: the same files, and the same words when one cannot be written.
#include "siamese/train/background_save.h"

#include "tests/train/tiny_run.h"

#include "siamese/io/run_dir.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace background_save_test {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

constexpr const char* kInBackground = "train.save_in_background=true";

// Every file of every checkpoint, but for config.yaml, which has the key.
void expect_same_checkpoints(const fs::path& a, const fs::path& b) {
  ASSERT_EQ(io::list_checkpoints(a), io::list_checkpoints(b));
  for (const int64_t step : io::list_checkpoints(a)) {
    const std::string folder = io::checkpoint_name(step);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(a / folder)) {
      const std::string name = entry.path().filename().string();
      if (name == io::kConfigFile) continue;
      EXPECT_EQ(io::read_file(a / folder / name), io::read_file(b / folder / name)) << folder << "/" << name;
      ++files;
    }
    EXPECT_GE(files, 3);
  }
}

TEST(BackgroundSave, TheSameFiles) {
  const std::vector<std::string> often = {"train.checkpoint_every=1", "train.keep_last=4", "train.keep_every=3"};
  for (const std::string family : {"moe", "vit", "dit"}) {
    SCOPED_TRACE(family);
    const TemporaryFolder folder("background_" + family);
    start_run(tiny_family(family, often), folder / "between", false, "", {});
    auto meanwhile = often;
    meanwhile.emplace_back(kInBackground);
    start_run(tiny_family(family, meanwhile), folder / "meanwhile", false, "", {});
    expect_same_runs(folder / "between", folder / "meanwhile", 12);
    expect_same_checkpoints(folder / "between", folder / "meanwhile");
    EXPECT_EQ(io::read_latest(folder / "meanwhile"), "step12");
  }
}

// What is written is what was there when the save began.
TEST(BackgroundSave, StepsMeanwhileDoNotChangeIt) {
  const TemporaryFolder folder("background_steps");
  for (const char* const run : {"between", "meanwhile"}) fs::create_directories(folder / run);
  Trainer trainer(tiny_config({"train.ema=0.9"}));
  for (int i = 0; i < 3; ++i) trainer.step();
  trainer.save(folder / "between");
  const auto saving = trainer.begin_save(folder / "meanwhile");
  EXPECT_EQ(saving->step(), 3);
  for (int i = 0; i < 3; ++i) trainer.step();
  EXPECT_EQ(saving->finish(), folder / "meanwhile" / "step3");
  expect_same_checkpoints(folder / "between", folder / "meanwhile");
}

// One that nobody asks about any more leaves nothing behind but itself.
TEST(BackgroundSave, IsWaitedForWhenItGoes) {
  const TemporaryFolder folder("background_gone");
  fs::create_directories(folder / "run");
  const Trainer trainer(tiny_config());
  trainer.begin_save(folder / "run").reset();
  EXPECT_EQ(io::read_latest(folder / "run"), "step0");
}

struct Saves : Heard {
  void stepped(const StepMetrics& metrics, int64_t) override { last = metrics.step; }
  void saved(const fs::path& checkpoint) override { names.push_back(checkpoint.filename().string()); }
  int64_t last = 0;
  std::vector<std::string> names;
};

TEST(BackgroundSave, IsHeardOfInOrder) {
  const TemporaryFolder folder("background_order");
  Saves saves;
  start_run(tiny_config({kInBackground, "train.checkpoint_every=1"}), folder / "run", false, "", {&saves, {}});
  ASSERT_EQ(saves.names.size(), 12U);
  for (int64_t step = 1; step <= 12; ++step) {
    EXPECT_EQ(saves.names[static_cast<size_t>(step - 1)], io::checkpoint_name(step));
  }
}

TEST(BackgroundSave, ThatFailsLeavesTheRunGoing) {
  const TemporaryFolder folder("background_blocked");
  Heard heard;
  int steps = 0;
  const fs::path run = folder / "run";
  const RunHooks hooks{&heard, [&] {
                         if (++steps == 6) io::write_file_atomic(run / "step8", "a file");
                         return 0;
                       }};
  ASSERT_EQ(start_run(tiny_config({kInBackground}), run, false, "", hooks).status, RunStatus::finished);
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("step 8: not saved: cannot replace"), std::string::npos) << heard.warnings[0];
  EXPECT_NE(heard.warnings[0].find("training goes on; the last good checkpoint is step4"), std::string::npos);
  EXPECT_EQ(io::list_checkpoints(run), (Steps{4, 12}));
}

// A signal, an error, divergence: what is under way ends first, and run.json counts it.
TEST(BackgroundSave, EveryEndOfARunWaitsForIt) {
  const TemporaryFolder folder("background_ends");
  const auto config = [](const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {kInBackground, "train.checkpoint_every=5", "train.eval_every=0"};
    all.insert(all.end(), more.begin(), more.end());
    return tiny_config(all);
  };
  const auto saved = [&](const char* run) {
    return nlohmann::json::parse(io::read_file(folder / run / "run.json")).at("saved").get<int64_t>();
  };
  EXPECT_EQ(start_run(config(), folder / "signal", false, "", stop_after(6)).status, RunStatus::stopped);
  EXPECT_EQ(saved("signal"), 6);
  EXPECT_EQ(io::list_checkpoints(folder / "signal"), (Steps{5, 6}));
  struct Failing : Observer {
    void stepped(const StepMetrics& metrics, int64_t) override {
      if (metrics.step == 6) throw std::bad_alloc();
    }
  } failing;
  EXPECT_THROW(start_run(config(), folder / "error", false, "", {&failing, {}}), SystemError);
  EXPECT_EQ(saved("error"), 6);
  EXPECT_EQ(io::list_checkpoints(folder / "error"), (Steps{5, 6}));
  ASSERT_EQ(resume_run(folder / "error", {}).status, RunStatus::finished);
  ASSERT_EQ(resume_run(folder / "signal", {}).status, RunStatus::finished);
  expect_same_runs(folder / "signal", folder / "error", 12);
  const auto infinite = config(
      {"optim.lr=1e30", "optim.clip=0", "optim.schedule.warmup=0", "train.max_skips=1", "train.checkpoint_every=1"});
  EXPECT_THROW(start_run(infinite, folder / "diverged", false, "", {}), DivergedError);
  EXPECT_EQ(io::list_checkpoints(folder / "diverged"), (Steps{1}));
  EXPECT_EQ(saved("diverged"), 1);
}

}  // namespace background_save_test
}  // namespace siamese::train

#include "tests/train/tiny_run.h"

namespace siamese::train {
namespace {

namespace fs = std::filesystem;

TEST(Resume, InterruptedAtAnyStepEqualsUninterrupted) {
  const TemporaryFolder folder("resume");
  for (const char* const scheme : {"pre", "siamese(x=hybrid)"}) {
    const RunConfig config = tiny_config({std::string("model.residual=") + scheme, "train.micro_batch=2"});
    const fs::path whole = folder / (std::string("whole_") + scheme);
    start_run(config, whole, false, "", {});
    for (int step = 1; step < 12; ++step) {
      const fs::path cut = folder / (std::string("cut_") + scheme + std::to_string(step));
      const RunResult stopped = start_run(config, cut, false, "", stop_after(step));
      ASSERT_EQ(stopped.status, RunStatus::stopped);
      ASSERT_EQ(run_status(cut), RunStatus::stopped);
      ASSERT_EQ(resume_run(cut, {}).status, RunStatus::finished);
      expect_same_runs(whole, cut, 12);
    }
  }
}

// A kill leaves metrics after the checkpoint, perhaps a torn line, and a half-written checkpoint aside.
TEST(Resume, AfterAKillTheTailIsComputedAgain) {
  const TemporaryFolder folder("kill");
  const RunConfig config = tiny_config();
  const fs::path whole = folder / "whole";
  const fs::path killed = folder / "killed";
  start_run(config, whole, false, "", {});
  start_run(config, killed, false, "", stop_after(11));
  fs::remove_all(killed / "step11");
  io::write_file_atomic(killed / "latest", "step8\n");
  std::ofstream(killed / "metrics.jsonl", std::ios::app) << "{\"schema\":1,\"st";
  fs::create_directories(killed / "step12.tmp-999999");
  ASSERT_EQ(resume_run(killed, {}).status, RunStatus::finished);
  expect_same_runs(whole, killed, 12);
  EXPECT_FALSE(fs::exists(killed / "step12.tmp-999999"));
}

TEST(Resume, BeforeTheFirstCheckpointStartsOver) {
  const TemporaryFolder folder("early");
  const RunConfig config = tiny_config({"train.checkpoint_every=0"});
  start_run(config, folder / "whole", false, "", {});
  start_run(config, folder / "early", false, "", stop_after(3));
  fs::remove_all(folder / "early" / "step3");
  fs::remove(folder / "early" / "latest");
  ASSERT_EQ(resume_run(folder / "early", {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", folder / "early", 12);
}

TEST(Resume, FromAnOlderCheckpointByName) {
  const TemporaryFolder folder("older");
  const RunConfig config = tiny_config();
  start_run(config, folder / "whole", false, "", {});
  start_run(config, folder / "again", false, "", {});
  ASSERT_EQ(resume_run(folder / "again" / "step4", {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", folder / "again", 12);
}

// Killed on the way from an older checkpoint: the next resume goes on from there, not from what was newest before.
TEST(Resume, AnOlderCheckpointByNameStaysChosen) {
  const TemporaryFolder folder("chosen");
  const RunConfig config = tiny_config();
  start_run(config, folder / "whole", false, "", {});
  start_run(config, folder / "again", false, "", {});
  ASSERT_EQ(resume_run(folder / "again" / "step4", stop_after(2)).status, RunStatus::stopped);
  fs::remove_all(folder / "again" / "step6");
  io::write_file_atomic(folder / "again" / "latest", "step4\n");
  ASSERT_EQ(resume_run(folder / "again", {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", folder / "again", 12);
}

TEST(Resume, AKillBeforeTheLastStatusIsMended) {
  const TemporaryFolder folder("status");
  start_run(tiny_config(), folder / "run", false, "", {});
  io::write_file_atomic(folder / "run" / "run.json", "{\"status\": \"running\", \"label\": 7}");
  EXPECT_EQ(resume_run(folder / "run", {}).status, RunStatus::finished);
  EXPECT_EQ(run_status(folder / "run"), RunStatus::finished);
}

TEST(Resume, AFinishedRunIsLeftAsItIs) {
  const TemporaryFolder folder("finished");
  start_run(tiny_config(), folder / "run", false, "", {});
  const std::string before = io::read_file(folder / "run" / "metrics.jsonl");
  EXPECT_EQ(resume_run(folder / "run", {}).status, RunStatus::finished);
  EXPECT_EQ(io::read_file(folder / "run" / "metrics.jsonl"), before);
}

TEST(Resume, OneThreadOrTwoGiveTheSameBits) {
  const TemporaryFolder folder("threads");
  const std::vector<std::string> larger = {"model.width=64", "model.context=96", "train.batch=16", "train.steps=4",
                                           "train.checkpoint_every=0"};
  for (const int threads : {1, 2}) {
    auto overrides = larger;
    overrides.push_back("engine.threads=" + std::to_string(threads));
    start_run(tiny_config(overrides), folder / std::to_string(threads), false, "", {});
  }
  expect_same_runs(folder / "1", folder / "2", 4);
}

TEST(Resume, RecomputationAndAccumulationKeepTheirPromises) {
  const TemporaryFolder folder("recompute");
  start_run(tiny_config(), folder / "kept", false, "", {});
  start_run(tiny_config({"engine.recompute=1"}), folder / "recomputed", false, "", {});
  expect_same_runs(folder / "kept", folder / "recomputed", 12);
  // Two micro-batches are one batch up to rounding.
  start_run(tiny_config({"train.micro_batch=2"}), folder / "accumulated", false, "", {});
  const auto whole = timeless_lines(folder / "kept" / "metrics.jsonl");
  const auto halves = timeless_lines(folder / "accumulated" / "metrics.jsonl");
  ASSERT_EQ(whole.size(), halves.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i]["loss"].get<double>(), halves[i]["loss"].get<double>(), 1e-4);
  }
}

}  // namespace
}  // namespace siamese::train

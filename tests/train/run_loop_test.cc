// What a run does when something cannot be written, and what it needs to go on.
#include "siamese/train/run_loop.h"

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/io/run_dir.h"

namespace siamese::train {
namespace run_loop_test {

namespace fs = std::filesystem;

using Steps = std::vector<int64_t>;

// A folder that no checkpoint can replace is as good as a full disk.
TEST(RunLoop, ASaveThatFailsLeavesTheRunGoing) {
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

TEST(RunLoop, TheFirstLineSaysWhatASchemeIsNotUnderAnElementWiseNorm) {
  struct Started : Observer {
    void started(const std::string& what) override { line = what; }
    std::string line;
  };
  const auto first_line = [](const std::string& scheme) {
    const TemporaryFolder folder("first_line");
    Started heard;
    start_run(tiny_config({"model.norm=dyt", "train.steps=1", "model.residual=" + scheme}), folder / "run", false, "",
              {&heard});
    return heard.line;
  };
  EXPECT_NE(first_line("attn_res")
                .find("; model.norm (dyt) does not take out the size of its input: with attn_res it "
                      "does not start as Pre-Norm"),
            std::string::npos);
  EXPECT_EQ(first_line("pre").find("model.norm"), std::string::npos);
}

TEST(RunLoop, ALastSaveThatFailsNamesTheLastGoodOne) {
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
TEST(RunLoop, AnEvaluationThatCouldNotBeRecordedIsMadeAgain) {
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
  EXPECT_EQ(run_status(run), RunStatus::stopped);
  fs::remove(run / "samples");
  fs::rename(run / "aside", run / "samples");
  ASSERT_EQ(resume_run(run, {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", run, 12);
}

// Memory that is not there, an error of LibTorch: nothing of ours, and no reason to lose what was trained.
template <class Thrown>
void expect_saved_after(const std::string& name, const Thrown& thrown, const std::string& said) {
  const TemporaryFolder folder(name);
  struct Failing : Observer {
    explicit Failing(const Thrown& error) : error_(error) {}
    void stepped(const StepMetrics& metrics, int64_t) override {
      if (metrics.step == 6) throw error_;
    }
    Thrown error_;
  } failing(thrown);
  const fs::path run = folder / "run";
  try {
    start_run(tiny_config({"train.checkpoint_every=0"}), run, false, "", {&failing, {}});
    FAIL() << "finished";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.what(), said + "; the last good checkpoint is step6; go on with: siamese resume " + run.string());
  }
  EXPECT_EQ(run_status(run), RunStatus::stopped);
  EXPECT_NE(io::read_file(run / "run.json").find(said), std::string::npos);
  ASSERT_EQ(resume_run(run, {}).status, RunStatus::finished);
  start_run(tiny_config({"train.checkpoint_every=0"}), folder / "whole", false, "", {});
  expect_same_runs(folder / "whole", run, 12);
}

TEST(RunLoop, AnyErrorLeavesTheRunSaved) {
  expect_saved_after("memory", std::bad_alloc(), "out of memory");
  expect_saved_after("library", std::runtime_error("could not create a primitive\nmore"),
                     "could not create a primitive");
}

TEST(RunLoop, AStateOfAnOlderVersionResumes) {
  const TemporaryFolder folder("older_state");
  const RunConfig config = tiny_family("vit");
  start_run(config, folder / "whole", false, "", {});
  start_run(config, folder / "old", false, "", stop_after(5));
  const fs::path state = folder / "old" / "step5" / "trainer.json";
  auto json = nlohmann::json::parse(io::read_file(state));
  for (const char* const key : {"files", "checksum", "config"}) ASSERT_EQ(json.erase(key), 1U) << key;
  ASSERT_EQ(json.size(), 6U);
  io::write_file_atomic(state, json.dump());
  ASSERT_EQ(resume_run(folder / "old", {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", folder / "old", 12);
}

TEST(RunLoop, AveragedWeightsBelongToACheckpoint) {
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

TEST(RunLoop, ALimitOfHoursIsNotASignal) {
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

// Its numbers depend on each other, on the config and on the folder's name.
TEST(RunLoop, AnEditedStateIsNamed) {
  const TemporaryFolder folder("edited_state");
  const fs::path run = folder / "run";
  start_run(tiny_config({"train.steps=8", "train.checkpoint_every=4"}), run, false, "", {});
  const fs::path state = run / "step4" / "trainer.json";
  const std::string good = io::read_file(state);
  for (const auto& [key, value] : {std::pair{"step", 5}, {"position", 17}, {"applied_steps", 3}}) {
    auto json = nlohmann::json::parse(good);
    for (const char* const newer : {"checksum", "config"}) json.erase(newer);  // which would tell before
    json[key] = value;
    io::write_file_atomic(state, json.dump());
    try {
      resume_run(run / "step4", {});
      ADD_FAILURE() << "accepted " << key;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("trainer.json: ") + key), std::string::npos) << error.what();
    }
  }
  io::write_file_atomic(state, "{}");
  EXPECT_THROW(resume_run(run / "step4", {}), DataError);
  io::write_file_atomic(state, good);
  EXPECT_EQ(resume_run(run / "step4", {}).status, RunStatus::finished);
}

// A line that somebody took away is not noticed by the weights; it is said.
TEST(RunLoop, MissingLinesAreSaid) {
  const TemporaryFolder folder("missing_lines");
  const fs::path run = folder / "run";
  start_run(tiny_config({"train.steps=8", "train.checkpoint_every=4"}), run, false, "", {});
  fs::remove(run / "metrics.jsonl");
  Heard heard;
  resume_run(run / "step4", {&heard, {}});
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("expected a line for each of 4 steps, got 0"), std::string::npos);
}

// A rate at which nothing is learned and nothing becomes infinite either.
std::vector<std::string> at_a_mad_rate(std::vector<std::string> more = {}) {
  more.insert(more.end(), {"train.steps=60", "optim.lr=10", "train.checkpoint_every=0", "train.eval_every=0"});
  return more;
}

TEST(RunLoop, ARunThatEndsAboveItsFirstLossHasDiverged) {
  const TemporaryFolder folder("above_first");
  const fs::path run = folder / "run";
  const auto expect_diverged = [&](const auto& act) {
    try {
      act();
      FAIL() << "finished";
    } catch (const DivergedError& error) {
      EXPECT_NE(std::string(error.what()).find("(mean of the last 50 steps) is above the first, "), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(run_status(run), RunStatus::diverged);
    EXPECT_NE(io::read_file(run / "run.json").find("is above the first"), std::string::npos);
  };
  expect_diverged([&] { start_run(tiny_config(at_a_mad_rate()), run, false, "", {}); });
  EXPECT_EQ(io::list_checkpoints(run), (Steps{60}));                                    // saved all the same
  EXPECT_NE(io::read_file(run / "eval.jsonl").find("\"step\":60"), std::string::npos);  // and evaluated
  expect_diverged([&] { resume_run(run, {}); });
}

TEST(RunLoop, ARunFromTrainedWeightsMayEndAboveItsFirstLoss) {
  const TemporaryFolder folder("above_source");
  start_run(tiny_config(), folder / "source", false, "", {});
  const RunConfig config = tiny_config(at_a_mad_rate({"init.from=" + (folder / "source").string()}));
  EXPECT_EQ(start_run(config, folder / "run", false, "", {}).status, RunStatus::finished);
  EXPECT_EQ(run_status(folder / "run"), RunStatus::finished);
}

}  // namespace run_loop_test
}  // namespace siamese::train

// init.optimizer: a run that goes on from another's checkpoint with its moments, under settings of its own; and what
// may be changed of a run that is resumed.
#include "tests/support/errors.h"
#include "tests/train/tiny_run.h"

#include "siamese/train/checkpoint.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace {

using siamese::testing::expect_error;

const std::vector<std::string> kFlat = {"optim.schedule.kind=constant", "optim.schedule.warmup=0",
                                        "train.eval_every=0"};

std::vector<std::string> flat(std::vector<std::string> more) {
  more.insert(more.begin(), kFlat.begin(), kFlat.end());
  return more;
}

std::vector<std::string> fork_of(const std::filesystem::path& checkpoint, std::vector<std::string> more = {}) {
  more.push_back("init.from=" + checkpoint.string());
  more.push_back("init.optimizer=true");
  return flat(std::move(more));
}

// Steps `from` + 1 ... of `whole` are steps 1 ... of `fork`, to the bit, but for their numbers.
void expect_goes_on(const std::filesystem::path& whole, const std::filesystem::path& fork, size_t from) {
  auto expected = timeless_lines(whole / "metrics.jsonl");
  auto got = timeless_lines(fork / "metrics.jsonl");
  ASSERT_EQ(expected.size(), from + got.size());
  expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(from));
  for (size_t i = 0; i < got.size(); ++i) {
    for (const char* const key : {"step", "tokens", "sites", "experts"}) {
      expected[i].erase(key);
      got[i].erase(key);
    }
    EXPECT_EQ(got[i], expected[i]) << i;
  }
}

TEST(Fork, WithTheSameSettingsGoesOnToTheSameBits) {
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    const TemporaryFolder folder("fork_" + family);
    const auto config = [&](const std::vector<std::string>& overrides) {
      return family == "lm" ? tiny_config(overrides, {"train.ema=0.9", "train.skip_outliers=3", "train.skip_window=8"})
                            : tiny_family(family, overrides);
    };
    start_run(config(flat({"train.steps=10", "train.checkpoint_every=4"})), folder / "whole", false, "", {});
    start_run(config(fork_of(folder / "whole/step4", {"train.steps=6", "train.checkpoint_every=6"})), folder / "fork",
              false, "", {});
    expect_goes_on(folder / "whole", folder / "fork", 4);
    for (const char* const file : {"model.safetensors", "optim.safetensors", "ema.safetensors"}) {
      EXPECT_EQ(io::read_file(folder / "whole/step10" / file), io::read_file(folder / "fork/step6" / file))
          << family << " " << file;
    }
  }
}

TEST(Fork, AFreshOptimizerIsAnotherRun) {
  const TemporaryFolder folder("fork_fresh");
  start_run(tiny_config(flat({"train.steps=6"})), folder / "whole", false, "", {});
  start_run(tiny_config(flat({"train.steps=2", "init.from=" + (folder / "whole/step4").string()})), folder / "fresh",
            false, "", {});
  EXPECT_NE(timeless_lines(folder / "fresh/metrics.jsonl")[1]["loss"],
            timeless_lines(folder / "whole/metrics.jsonl")[5]["loss"]);
}

TEST(Fork, AnotherRateTakesTheMomentsAlong) {
  const TemporaryFolder folder("fork_rate");
  start_run(tiny_config(flat({"train.steps=6"})), folder / "whole", false, "", {});
  const RunConfig config = tiny_config(fork_of(folder / "whole/step4", {"train.steps=2", "optim.lr=5e-4"}));
  Trainer fork(config);
  EXPECT_EQ(fork.state().forked_steps, 4);
  EXPECT_EQ(fork.state().forked_position, 16u);
  start_run(config, folder / "fork", false, "", {});
  const auto lines = timeless_lines(folder / "fork/metrics.jsonl");
  const auto whole = timeless_lines(folder / "whole/metrics.jsonl");
  EXPECT_EQ(lines[0]["loss"], whole[4]["loss"]);  // the same weights see the same batch
  EXPECT_EQ(lines[0]["lr"], 5e-4);
  EXPECT_NE(lines[1]["loss"], whole[5]["loss"]);
  EXPECT_EQ(lines[1]["tokens"], 2 * 4 * 24);  // its own
}

TEST(Fork, IsResumedToTheSameBits) {
  const TemporaryFolder folder("fork_resume");
  start_run(tiny_config(flat({"train.steps=4"})), folder / "source", false, "", {});
  const RunConfig config = tiny_config(fork_of(folder / "source", {"train.steps=7", "train.checkpoint_every=0"}));
  start_run(config, folder / "whole", false, "", {});
  start_run(config, folder / "stopped", false, "", stop_after(3));
  std::filesystem::remove_all(folder / "source");  // no longer needed
  EXPECT_EQ(resume_run(folder / "stopped", {}).status, RunStatus::finished);
  expect_same_runs(folder / "whole", folder / "stopped", 7);
}

TEST(Fork, WhatDoesNotFitIsRefused) {
  const TemporaryFolder folder("fork_misfit");
  start_run(tiny_config(flat({"train.steps=2"})), folder / "run", false, "", {});
  expect_error<DataError>([&] { Trainer(tiny_config(fork_of(folder / "run", {"model.width=32"}))); },
                          {"init.", "run/step2"});
  std::filesystem::remove(folder / "run/step2/optim.safetensors");
  expect_error<DataError>([&] { Trainer(tiny_config(fork_of(folder / "run"))); },
                          {"init.optimizer: ", "missing optim.safetensors"});
  expect_error<UsageError>([&] { tiny_config({"init.optimizer=true"}); }, {"init.optimizer", "init.from"});
}

TEST(ResumeEdits, WhatMayChangeDoesAndIsKept) {
  const TemporaryFolder folder("resume_edit");
  start_run(tiny_config(flat({"train.steps=4"})), folder / "run", false, "", {});
  Heard heard;
  const RunResult result = resume_run(folder / "run", {&heard}, false, {"train.steps=7", "train.record_every=2"});
  EXPECT_EQ(result.status, RunStatus::finished);
  ASSERT_EQ(heard.warnings.size(), 1u);
  EXPECT_NE(heard.warnings[0].find("train.steps: was 4, is 7"), std::string::npos) << heard.warnings[0];
  EXPECT_EQ(read_config_file(folder / "run/config.yaml").train.steps, 7);
  EXPECT_EQ(read_config_file(folder / "run/config.yaml").train.record_every, 2);
  // Of what decides a result.
  EXPECT_EQ(read_trainer_state(folder / "run/step7/trainer.json").accepted_config,
            (std::vector<std::string>{"step 4: train.steps: was 4, is 7"}));
  // The same as one that was asked for all of it at the start.
  start_run(tiny_config(flat({"train.steps=7"})), folder / "whole", false, "", {});
  EXPECT_EQ(io::read_file(folder / "run/step7/model.safetensors"),
            io::read_file(folder / "whole/step7/model.safetensors"));
}

TEST(ResumeEdits, TheRestIsRefusedByNameAndNothingIsWritten) {
  const TemporaryFolder folder("resume_refused");
  start_run(tiny_config(flat({"train.steps=4"})), folder / "run", false, "", {});
  const std::string before = io::read_file(folder / "run/config.yaml");
  const auto resume = [&](const std::string& override) { resume_run(folder / "run", {}, false, {override}); };
  expect_error<UsageError>([&] { resume("optim.lr=1"); },
                           {"override of optim.lr: was 0.001, got 1", "init.from=RUN init.optimizer=true"});
  expect_error<UsageError>([&] { resume("optim={lr: 1}"); }, {"override of optim.lr"});
  expect_error<UsageError>([&] { resume("model.width=32"); }, {"model.width"});
  expect_error<UsageError>([&] { resume("train.steps=-1"); }, {"train.steps: expected at least 1"});
  expect_error<UsageError>([&] { resume("train.stepz=9"); }, {"train.stepz", "did you mean 'train.steps'"});
  expect_error<UsageError>([&] { resume("eval.samples=4"); }, {"eval.samples"});
  EXPECT_EQ(io::read_file(folder / "run/config.yaml"), before);
}

}  // namespace
}  // namespace siamese::train

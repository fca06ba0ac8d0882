#include "tests/train/tiny_run.h"

#include "siamese/io/run_dir.h"
#include "siamese/ops/operand.h"
#include "siamese/train/trainer_state.h"

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

// Muon's one moment, rates of their own, and what is not trained.
TEST(Resume, OfMuonAndFrozenParametersEqualsUninterrupted) {
  const TemporaryFolder folder("muon");
  const std::vector<std::string> all = {"optim.name=muon", "optim.freeze=[norm, 'blocks.1.attention.*']",
                                        "optim.lr_scale.embedding=0.5", "optim.muon.momentum=0.9"};
  for (const std::string family : {"lm", "moe", "dit"}) {
    SCOPED_TRACE(family);
    const RunConfig config = family == "lm" ? tiny_config(all) : tiny_family(family, all);
    start_run(config, folder / (family + "_whole"), false, "", {});
    start_run(config, folder / (family + "_cut"), false, "", stop_after(7));
    ASSERT_EQ(resume_run(folder / (family + "_cut"), {}).status, RunStatus::finished);
    expect_same_runs(folder / (family + "_whole"), folder / (family + "_cut"), 12);
    const std::string optim = io::read_file(folder / (family + "_cut") / "step12" / "optim.safetensors");
    EXPECT_NE(optim.find("\"m.blocks.0.attention.qkv.weight\""), std::string::npos);
    EXPECT_EQ(optim.find("\"v.blocks.0.attention.qkv.weight\""), std::string::npos);
    EXPECT_EQ(optim.find("\"m.blocks.1.attention.qkv.weight\""), std::string::npos);
  }
}

TEST(Resume, OfElementWiseNormsEqualsUninterrupted) {
  const TemporaryFolder folder("norm_kinds");
  for (const std::string norm : {"dyt", "derf"}) {
    const RunConfig config = tiny_config({"model.norm=" + norm, "model.norm_alpha=0.7", "train.micro_batch=2"});
    start_run(config, folder / (norm + "_whole"), false, "", {});
    start_run(config, folder / (norm + "_cut"), false, "", stop_after(7));
    ASSERT_EQ(resume_run(folder / (norm + "_cut"), {}).status, RunStatus::finished);
    expect_same_runs(folder / (norm + "_whole"), folder / (norm + "_cut"), 12);
  }
}

// What is rounded once a step is rounded anew after a resume; another precision is another run.
TEST(Resume, OfBfloat16EqualsUninterrupted) {
  const TemporaryFolder folder("bfloat16");
  const RunConfig config = tiny_config({"engine.precision=bfloat16", "train.micro_batch=2"});
  start_run(config, folder / "whole", false, "", {});
  EXPECT_EQ(ops::precision(), ops::Precision::float32) << "a run's precision outlived it";
  start_run(config, folder / "cut", false, "", stop_after(7));
  ASSERT_EQ(resume_run(folder / "cut", {}).status, RunStatus::finished);
  EXPECT_EQ(ops::precision(), ops::Precision::float32) << "a run's precision outlived it";
  expect_same_runs(folder / "whole", folder / "cut", 12);
  start_run(tiny_config({"train.micro_batch=2"}), folder / "float32", false, "", {});
  EXPECT_NE(io::read_file(folder / "float32" / "step12" / "model.safetensors"),
            io::read_file(folder / "whole" / "step12" / "model.safetensors"));

  start_run(config, folder / "other", false, "", stop_after(7));
  const fs::path file = folder / "other" / "config.yaml";
  std::string text = io::read_file(file);
  const size_t at = text.find("bfloat16");
  ASSERT_NE(at, std::string::npos);
  io::write_file_atomic(file, text.replace(at, 8, "float32"));
  try {
    resume_run(folder / "other", {});
    FAIL() << "went on in another precision";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("engine.precision: float32, and the checkpoint says bfloat16"),
              std::string::npos)
        << error.what();
  }
  // On explicit request, in both files, it goes on, and the run says so for good.
  io::write_file_atomic(folder / "other" / "step7" / "config.yaml", text);
  ASSERT_EQ(resume_run(folder / "other", {}).status, RunStatus::finished);
  const TrainerState state = read_trainer_state(folder / "other" / "step12" / "trainer.json");
  EXPECT_EQ(state.accepted_config, std::vector<std::string>{"step 7: engine.precision: was bfloat16, is float32"});
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
  const fs::path half_written = io::aside_name(killed / "step12", io::Aside::writing);
  fs::create_directories(half_written);
  fs::create_directories(killed / "step12.tmp-999999");  // no name of ours
  ASSERT_EQ(resume_run(killed, {}).status, RunStatus::finished);
  expect_same_runs(whole, killed, 12);
  EXPECT_FALSE(fs::exists(half_written));
  EXPECT_TRUE(fs::exists(killed / "step12.tmp-999999"));
}

TEST(Resume, BeforeTheFirstCheckpointStartsOver) {
  const TemporaryFolder folder("early");
  const RunConfig config = tiny_config({"train.checkpoint_every=0"});
  start_run(config, folder / "whole", false, "", {});
  start_run(config, folder / "early", false, "", stop_after(3));
  // Its checkpoint gone, a run must not begin anew without a word.
  const fs::path saved = folder / "early" / "step3";
  fs::rename(saved, folder / "aside");
  fs::remove(folder / "early" / "latest");
  const std::string lines = io::read_file(folder / "early" / "metrics.jsonl");
  try {
    resume_run(folder / "early", {});
    FAIL() << "started over";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("run.json says that step 3 was saved"), std::string::npos) << error.what();
  }
  EXPECT_EQ(io::read_file(folder / "early" / "metrics.jsonl"), lines);
  // Killed at step 3, before anything was saved.
  auto run_file = nlohmann::json::parse(io::read_file(folder / "early" / "run.json"));
  run_file["saved"] = run_file["step"] = 0;
  run_file["status"] = "running";
  io::write_file_atomic(folder / "early" / "run.json", run_file.dump());
  Heard heard;
  ASSERT_EQ(resume_run(folder / "early", {&heard, {}}).status, RunStatus::finished);
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("it starts again from the beginning, and its 3 steps are made anew"),
            std::string::npos)
      << heard.warnings[0];
  expect_same_runs(folder / "whole", folder / "early", 12);
}

// The step is saved first, so that a kill or an error in a long evaluation costs the evaluation only.
TEST(Resume, AnEvaluationThatIsMissingIsMade) {
  const TemporaryFolder folder("evaluation");
  start_run(tiny_config(), folder / "whole", false, "", {});
  for (const int stop : {5, 12}) {
    const fs::path run = folder / std::to_string(stop);
    EXPECT_EQ(start_run(tiny_config(), run, false, "", stop_after(stop)).status, RunStatus::stopped);
    const std::string before = io::read_file(run / "eval.jsonl");
    EXPECT_EQ(before.find("\"step\":" + std::to_string(stop)), std::string::npos);
    ASSERT_EQ(resume_run(run, {}).status, RunStatus::finished);
    EXPECT_EQ(run_status(run), RunStatus::finished);
    expect_same_runs(folder / "whole", run, 12);
  }
}

// What is not known as a run is not touched, whatever it holds.
TEST(Resume, OnlyARunIsResumed) {
  const TemporaryFolder folder("not_a_run");
  start_run(tiny_config(), folder / "run", false, "", {});
  const auto refused = [&](const fs::path& path, const std::string& because) {
    try {
      resume_run(path, {});
      ADD_FAILURE() << "resumed " << path;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(because), std::string::npos) << error.what();
    }
  };
  // A folder with a config and somebody's own files.
  fs::create_directories(folder / "theirs");
  fs::copy_file(folder / "run" / "config.yaml", folder / "theirs" / "config.yaml");
  io::write_file_atomic(folder / "theirs" / "metrics.jsonl", "{\"mine\": 1}\n");
  refused(folder / "theirs", "not a run directory: it has no run.json of ours");
  // A checkpoint beside them.
  fs::copy(folder / "run" / "step4", folder / "theirs" / "copy");
  refused(folder / "theirs" / "copy", "expected a checkpoint in its run");
  fs::copy(folder / "run" / "step4", folder / "theirs" / "step4");
  refused(folder / "theirs" / "step4", "not a run directory");
  EXPECT_EQ(io::read_file(folder / "theirs" / "metrics.jsonl"), "{\"mine\": 1}\n");
}

// Notes in a checkpoint outlive what would replace or remove it.
TEST(Resume, NotesInACheckpointStay) {
  const TemporaryFolder folder("notes");
  const fs::path run = folder / "run";
  start_run(tiny_config({"train.keep_last=1"}), run, false, "", stop_after(5));
  EXPECT_EQ(io::list_checkpoints(run), (std::vector<int64_t>{5}));
  io::write_file_atomic(run / "step5" / "notes.md", "mine");
  Heard heard;
  ASSERT_EQ(resume_run(run, {&heard, {}}).status, RunStatus::finished);
  EXPECT_EQ(io::read_file(run / "step5" / "notes.md"), "mine");
  EXPECT_EQ(io::list_checkpoints(run), (std::vector<int64_t>{5, 12}));
  ASSERT_EQ(heard.warnings.size(), 2U);  // after steps 8 and 12
  EXPECT_NE(heard.warnings[0].find("step5: stays as it is: it holds what no run wrote: 'notes.md'"), std::string::npos);
  // Written again, it would be replaced: the save fails instead.
  start_run(tiny_config(), folder / "again", false, "", {});
  io::write_file_atomic(folder / "again" / "step8" / "notes.md", "mine");
  Heard again;
  ASSERT_EQ(resume_run(folder / "again" / "step4", {&again, {}}).status, RunStatus::finished);
  EXPECT_EQ(io::read_file(folder / "again" / "step8" / "notes.md"), "mine");
  ASSERT_EQ(again.warnings.size(), 1U);
  EXPECT_NE(again.warnings[0].find("step 8: not saved"), std::string::npos) << again.warnings[0];
}

// A line of eval.jsonl that is none does not keep a finished run from being left as it is.
TEST(Resume, StrangeLinesOfEvaluations) {
  const TemporaryFolder folder("strange_lines");
  start_run(tiny_config(), folder / "run", false, "", {});
  const fs::path file = folder / "run" / "eval.jsonl";
  const std::string text = "junk\n{\"step\":\"6\"}\n" + io::read_file(file);
  io::write_file_atomic(file, text);
  EXPECT_EQ(resume_run(folder / "run", {}).status, RunStatus::finished);
  EXPECT_EQ(io::read_file(file), text);
}

// A backup by links keeps what it had while the run goes on.
TEST(Resume, HardLinkedCopiesStay) {
  const TemporaryFolder folder("links");
  start_run(tiny_config(), folder / "run", false, "", stop_after(6));
  fs::copy(folder / "run", folder / "backup", fs::copy_options::recursive | fs::copy_options::create_hard_links);
  ASSERT_EQ(resume_run(folder / "run", {}).status, RunStatus::finished);
  EXPECT_EQ(timeless_lines(folder / "backup" / "metrics.jsonl").size(), 6U);
  ASSERT_EQ(resume_run(folder / "backup", {}).status, RunStatus::finished);
  expect_same_runs(folder / "run", folder / "backup", 12);
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
  auto run_file = nlohmann::json::parse(io::read_file(folder / "run" / "run.json"));
  run_file["status"] = "running";
  run_file["label"] = 7;
  io::write_file_atomic(folder / "run" / "run.json", run_file.dump());
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

#include "siamese/train/run.h"

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace {

namespace fs = std::filesystem;

nlohmann::json run_file(const fs::path& dir) { return nlohmann::json::parse(io::read_file(dir / "run.json")); }

TEST(Run, LeavesWhatTheRunDirectoryPromises) {
  const TemporaryFolder folder("layout");
  const fs::path run = folder / "run";
  start_run(tiny_config(), run, false, "a label", {});
  for (const char* const file :
       {"config.yaml", "metrics.jsonl", "eval.jsonl", "run.json", "latest", "step4/trainer.json",
        "step12/model.safetensors", "step12/optim.safetensors", "step12/config.yaml"}) {
    EXPECT_TRUE(fs::exists(run / file)) << file;
  }
  EXPECT_EQ(run_file(run)["status"], "finished");
  EXPECT_EQ(run_file(run)["label"], "a label");
  const auto metrics = timeless_lines(run / "metrics.jsonl");
  ASSERT_EQ(metrics.size(), 12U);
  EXPECT_EQ(metrics[11]["step"], 12);
  EXPECT_EQ(metrics[11]["tokens"], 12 * 4 * 24);
  EXPECT_EQ(metrics[5]["sites"].size(), 4U);
  EXPECT_EQ(metrics[5]["sites"][1]["streams"][0]["name"], "X");
  EXPECT_GT(metrics[5]["sites"][1]["grad_norm"].get<double>(), 0);
  EXPECT_FALSE(metrics[6].contains("sites"));
  const auto evals = timeless_lines(run / "eval.jsonl");
  ASSERT_EQ(evals.size(), 3U);  // steps 5, 10 and the end
  EXPECT_EQ(evals[2]["step"], 12);
  EXPECT_EQ(evals[2]["accuracy"]["groups"].size(), 3U);
}

TEST(Run, AnExistingDirectoryIsNotTouchedWithoutOverwrite) {
  const TemporaryFolder folder("exists");
  start_run(tiny_config(), folder / "run", false, "", {});
  const std::string before = io::read_file(folder / "run" / "metrics.jsonl");
  EXPECT_THROW(start_run(tiny_config({"train.steps=2"}), folder / "run", false, "", {}), UsageError);
  EXPECT_EQ(io::read_file(folder / "run" / "metrics.jsonl"), before);
  start_run(tiny_config({"train.steps=2"}), folder / "run", true, "", {});
  EXPECT_EQ(timeless_lines(folder / "run" / "metrics.jsonl").size(), 2U);
  EXPECT_FALSE(fs::exists(folder / "run" / "step12"));
  // --overwrite is for runs only.
  fs::create_directories(folder / "precious");
  std::ofstream(folder / "precious" / "thesis.tex") << "text";
  EXPECT_THROW(start_run(tiny_config(), folder / "precious", true, "", {}), UsageError);
  EXPECT_TRUE(fs::exists(folder / "precious" / "thesis.tex"));
  std::ofstream(folder / "precious" / "config.yaml") << "theirs: true\n";
  EXPECT_THROW(start_run(tiny_config(), folder / "precious", true, "", {}), UsageError);
  EXPECT_TRUE(fs::exists(folder / "precious" / "thesis.tex"));
  EXPECT_THROW(start_run(tiny_config(), folder / "run" / "step2", true, "", {}), UsageError);
  // What a kill before the first file leaves is no obstacle.
  fs::create_directories(folder / "early");
  std::ofstream(io::aside_name(folder / "early" / "config.yaml", io::Aside::writing)) << "x";
  fs::copy_file(folder / "run" / "run.json", folder / "early" / "run.json");
  EXPECT_EQ(start_run(tiny_config({"train.steps=1"}), folder / "early", false, "", {}).status, RunStatus::finished);
  EXPECT_EQ(run_file(folder / "early")["steps"], 1);
}

// A run is known by its run.json, and each entry by its name and place; what is refused is not touched at all.
TEST(Run, OverwriteReplacesARunAndNothingElse) {
  const TemporaryFolder folder("ours");
  const RunConfig config = tiny_config({"train.steps=2"});
  const auto refused = [&](const fs::path& dir, const std::string& because) {
    std::vector<std::string> before, after;
    for (const auto& entry : fs::recursive_directory_iterator(dir)) before.push_back(entry.path().string());
    try {
      start_run(config, dir, true, "", {});
      ADD_FAILURE() << "overwrote " << dir;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(because), std::string::npos) << error.what();
    }
    for (const auto& entry : fs::recursive_directory_iterator(dir)) after.push_back(entry.path().string());
    EXPECT_EQ(before, after);
  };
  // A tutorial that looks like a run.
  fs::create_directories(folder / "tutorial" / "step1");
  std::ofstream(folder / "tutorial" / "step1" / "notes.md") << "text";
  std::ofstream(folder / "tutorial" / "config.yaml") << "theirs: true\n";
  refused(folder / "tutorial", "it has no run.json of ours, but 'config.yaml', 'step1'");
  std::ofstream(folder / "tutorial" / "run.json") << R"({"schema": 1, "status": "finished"})";
  refused(folder / "tutorial", "it has no run.json of ours");
  std::ofstream(folder / "tutorial" / "run.json") << "no JSON";
  refused(folder / "tutorial", "it has no run.json of ours");
  // Somebody's files in a run, at any depth.
  start_run(config, folder / "run", false, "", {});
  for (const char* const theirs : {"notes.md", "step2/notes.md", "samples/holiday.png", "photos.old-2023/a.jpg",
                                   "config.yaml.tmp-99999", "step7"}) {
    fs::create_directories((folder / "run" / theirs).parent_path());
    std::ofstream(folder / "run" / theirs) << "text";
    refused(folder / "run", "holds what no run wrote: '");
    fs::remove(folder / "run" / theirs);
    if (std::string(theirs).starts_with("photos")) fs::remove(folder / "run" / "photos.old-2023");
  }
  // Refused without --overwrite, a folder keeps even what looks like leftovers.
  fs::create_directories(folder / "home" / "photos.old-2023");
  std::ofstream(folder / "home" / "report.old-99999") << "text";
  EXPECT_THROW(start_run(config, folder / "home", false, "", {}), UsageError);
  EXPECT_TRUE(fs::exists(folder / "home" / "photos.old-2023"));
  EXPECT_TRUE(fs::exists(folder / "home" / "report.old-99999"));
}

// The link is the user's: the run behind it is replaced where it is, with and without a slash.
TEST(Run, ALinkedDirectoryIsReplacedWhereItIs) {
  const TemporaryFolder folder("linked");
  for (const char* const slash : {"", "/"}) {
    const fs::path target = folder / ("disk" + std::to_string(std::string(slash).size()));
    const fs::path link = folder / ("link" + std::to_string(std::string(slash).size()));
    start_run(tiny_config({"train.steps=2"}), target, false, "", {});
    fs::create_directory_symlink(target, link);
    start_run(tiny_config({"train.steps=3"}), link.string() + slash, true, "", {});
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(timeless_lines(target / "metrics.jsonl").size(), 3U);
    EXPECT_FALSE(fs::exists(target / "step2"));
  }
  fs::create_directory_symlink(folder / "nowhere", folder / "broken");
  EXPECT_THROW(start_run(tiny_config(), folder / "broken", false, "", {}), UsageError);
}

TEST(Run, KeepsItsIdentity) {
  const TemporaryFolder folder("identity");
  start_run(tiny_config(), folder / "run", false, "", stop_after(5));
  const auto before = run_file(folder / "run");
  EXPECT_EQ(before["kind"], "run");
  EXPECT_EQ(before["saved"], 5);
  fs::rename(folder / "run", folder / "moved");
  resume_run(folder / "moved", {});
  EXPECT_EQ(run_file(folder / "moved")["id"], before["id"]);
  start_run(tiny_config(), folder / "moved", true, "", {});
  EXPECT_NE(run_file(folder / "moved")["id"], before["id"]);
}

TEST(Run, OneWriterAtATime) {
  const TemporaryFolder folder("lock");
  const fs::path run = folder / "run";
  const RunHooks nosy{nullptr, [&] {
                        EXPECT_THROW(resume_run(run, {}), UsageError);
                        EXPECT_THROW(start_run(tiny_config(), run, true, "", {}), UsageError);
                        return 0;
                      }};
  start_run(tiny_config({"train.steps=2"}), run, false, "", nosy);
  EXPECT_EQ(timeless_lines(run / "metrics.jsonl").size(), 2U);
}

TEST(Run, BadDataIsRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder("bad");
  const RunConfig missing = tiny_config({"data.source=text", "data.train=[/nonexistent/text.txt]"});
  EXPECT_THROW(start_run(missing, folder / "run", false, "", {}), DataError);
  EXPECT_FALSE(fs::exists(folder / "run"));
  std::ofstream(folder / "a_file") << "x";
  EXPECT_THROW(start_run(tiny_config(), folder / "a_file" / "run", false, "", {}), SystemError);
}

TEST(Run, NonFiniteStepsAreSkippedThenTheRunHasDiverged) {
  const TemporaryFolder folder("diverge");
  // Weights of this size overflow in the first product.
  const RunConfig config = tiny_config({"init.std=1e30", "train.max_skips=3", "model.residual=pre"});
  EXPECT_THROW(start_run(config, folder / "run", false, "", {}), DivergedError);
  EXPECT_EQ(run_file(folder / "run")["status"], "diverged");
  const auto metrics = timeless_lines(folder / "run" / "metrics.jsonl");
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_EQ(metrics[0]["skipped"], true);
  EXPECT_TRUE(metrics[0]["loss"].is_null() || metrics[0]["grad_norm"].is_null());
}

TEST(Run, SkippedStepsLeaveTheWeightsAlone) {
  Trainer trainer(tiny_config({"init.std=1e30", "model.residual=pre"}));
  std::vector<at::Tensor> before;
  for (const auto& parameter : trainer.model().parameters().list()) before.push_back(parameter.value.detach().clone());
  EXPECT_TRUE(trainer.step().skipped);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(before[i], trainer.model().parameters().list()[i].value));
  }
  EXPECT_EQ(trainer.state().skipped_steps, 1);
  EXPECT_EQ(trainer.state().applied_steps, 0);
}

TEST(Run, InitFromStartsWithTheWeightsOfAnotherRun) {
  const TemporaryFolder folder("from");
  start_run(tiny_config(), folder / "first", false, "", {});
  const Trainer trainer(tiny_config({"init.from=" + (folder / "first").string()}));
  const auto loaded = load_model(folder / "first");
  for (size_t i = 0; i < loaded.model->parameters().list().size(); ++i) {
    EXPECT_TRUE(at::equal(loaded.model->parameters().list()[i].value, trainer.model().parameters().list()[i].value));
  }
  EXPECT_EQ(trainer.state().step, 0);
  // A resumed run needs its first weights no more.
  const RunConfig config = tiny_config({"init.from=" + (folder / "first").string()});
  start_run(config, folder / "second", false, "", stop_after(3));
  fs::rename(folder / "first", folder / "moved");
  EXPECT_EQ(resume_run(folder / "second", {}).status, RunStatus::finished);
  fs::rename(folder / "moved", folder / "first");
  EXPECT_THROW(Trainer(tiny_config({"model.residual=pre", "init.from=" + (folder / "first").string()})), DataError);
}

TEST(Run, BrokenCheckpointsAreNamed) {
  const TemporaryFolder folder("broken");
  start_run(tiny_config(), folder / "run", false, "", {});
  const fs::path weights = folder / "run" / "step12" / "model.safetensors";
  fs::resize_file(weights, fs::file_size(weights) / 2);
  try {
    load_model(folder / "run");
    FAIL() << "accepted";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("model.safetensors"), std::string::npos) << error.what();
  }
  EXPECT_THROW(load_model(folder / "nothing"), DataError);
}

TEST(Run, LearnsOneDigitAdditionBelowChance) {
  const TemporaryFolder folder("learns");
  start_run(tiny_config(
                {"train.steps=60", "train.batch=16", "optim.lr=1e-2", "data.operations=+", "train.checkpoint_every=0"}),
            folder / "run", false, "", {});
  const auto metrics = timeless_lines(folder / "run" / "metrics.jsonl");
  EXPECT_LT(metrics.back()["loss"].get<double>(), 0.75 * metrics.front()["loss"].get<double>());
}

}  // namespace
}  // namespace siamese::train

// Results that the user names: what is not such a result stays. And answers that are refused rather than wrong.
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;

class UserFiles : public CommandTest {
 protected:
  void train_run() const { ASSERT_EQ(run(tiny + "model.residual=pre --quiet --out r").exit_code, 0); }
  // A sweep over a text of the user's, seeds as given.
  void write_sweep(const std::string& seeds) const {
    write("s.yaml", "sweep: s\nconfig: '" SIAMESE_CONFIG_FOLDER
                    "/../tests/cli/tiny.yaml'\n"
                    "set: {data.source: text, data.train: [c.txt]}\n"
                    "variants: [{model.residual: pre}, {model.residual: post}]\n"
                    "grid: {train.seed: " +
                        seeds + "}\n");
  }
  static std::string text(const std::string& line) {
    std::string all;
    while (all.size() < 6000) all += line + "\n";
    return all;
  }
};

TEST_F(UserFiles, ATokenizerIsNotWrittenOverTheCorpus) {
  write("c.txt", text("a corpus that took years"));
  write("d.txt", text("and another"));
  expect_refusal("tokenizer train c.txt c.txt --vocab 260", 2, "c.txt: exists already and is no tokenizer.json");
  expect_refusal("tokenizer train c.txt d.txt --vocab 260", 2, "c.txt: exists already and is no tokenizer.json");
  EXPECT_EQ(read("c.txt"), text("a corpus that took years"));
  ASSERT_EQ(run("tokenizer train t.json c.txt --vocab 260").exit_code, 0);
  const std::string first = read("t.json");
  ASSERT_EQ(run("tokenizer train t.json d.txt --vocab 264").exit_code, 0);
  EXPECT_NE(read("t.json"), first);
}

TEST_F(UserFiles, ResultsDoNotReplaceWhatIsNoResult) {
  train_run();
  write("mine.md", "mine");
  ASSERT_EQ(run("report r").exit_code, 0);
  const std::string page = read("r/report.html");
  expect_refusal("report r --out mine.md", 2, "mine.md: exists already and is no page of a report");
  expect_refusal("report r --out a.html --csv ./a.html", 2, "--csv: expected another file than --out");
  write("r/report.html", "mine");
  expect_refusal("report r", 2, "report.html: exists already and is no page of a report");
  write("r/report.html", page);
  EXPECT_EQ(run("report r").exit_code, 0);
  fs::create_directories(folder / "an");
  write("an/analysis.json", "mine");
  expect_refusal("analyze r --samples 2 --out an", 2, "an: exists already and is no analysis");
  EXPECT_EQ(read("an/analysis.json"), "mine");
  // What a killed analysis left is ours.
  ASSERT_EQ(run("analyze r --samples 2 --out half").exit_code, 0);
  const std::string whole = read("half/analysis.json");
  fs::remove(folder / "half/analysis.json");
  EXPECT_EQ(run("analyze r --samples 2 --out half").exit_code, 0);
  EXPECT_EQ(read("half/analysis.json"), whole);
  fs::remove(folder / "half/analysis.json");
  write("half/notes.md", "mine");
  expect_refusal("analyze r --samples 2 --out half", 2, "half: exists already and is no analysis");
  EXPECT_EQ(read("mine.md"), "mine");
}

TEST_F(UserFiles, ASampleIsNotWrittenOverTheWeights) {
  ASSERT_EQ(run("train dit-micro model.image=8 model.patch=4 model.width=16 model.blocks=1 model.heads=2 train.batch=2 "
                "train.steps=1 train.eval_every=0 eval.batches=1 eval.samples=0 engine.threads=1 --quiet --out dit")
                .exit_code,
            0);
  const std::string weights = read("dit/step1/model.safetensors");
  expect_refusal("sample dit --n 1 --steps 2 --out dit/step1/model.safetensors", 2,
                 "model.safetensors: exists already and is no file of samples");
  expect_refusal("sample dit --n 1 --steps 2 --npz dit/run.json", 2, "run.json: exists already and is no npz file");
  expect_refusal("sample dit --n 1 --steps 2 --out x --npz ./x", 2, "expected different files");
  EXPECT_EQ(read("dit/step1/model.safetensors"), weights);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(run("sample dit --n 1 --steps 2 --out s.safetensors --npz s.npz --grid s.png").exit_code, 0);
  }
}

TEST_F(UserFiles, ARunIsNotMadeShorterThanItIs) {
  train_run();
  const std::string config = read("r/config.yaml"), lines = read("r/metrics.jsonl");
  expect_refusal("resume r train.steps=4", 2, "train.steps: expected 6 or more, which have been taken already, got 4");
  EXPECT_EQ(read("r/config.yaml"), config);
  EXPECT_EQ(read("r/metrics.jsonl"), lines);
}

TEST_F(UserFiles, AnExplosionIsNoFinishedRun) {
  const CommandResult result = run(tiny + "optim.lr=1e6 optim.schedule.warmup=0 --quiet --out r");
  EXPECT_EQ(result.exit_code, 4) << result.error;
  EXPECT_NE(result.error.find("above twice the first"), std::string::npos) << result.error;
}

TEST_F(UserFiles, TheSameRunTwiceIsOneSeed) {
  train_run();
  const CommandResult result = run("report r r/ ./r --csv - --out p.html");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("\nlm,pre,"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(",1,1,0,"), std::string::npos) << result.out;  // runs, finished, diverged
}

TEST_F(UserFiles, ASweepDoesNotMixData) {
  write("c.txt", text("one thing"));
  write_sweep("[1]");
  ASSERT_EQ(run("sweep s.yaml --out o --quiet").exit_code, 0);
  write("c.txt", text("something else altogether"));
  write_sweep("[1, 2]");
  expect_refusal("sweep s.yaml --out o --quiet", 2, "was trained on other data than its config names now");
  EXPECT_FALSE(exists("o/pre-seed2"));
  const CommandResult fresh = run("sweep s.yaml --out o --quiet --fresh");
  ASSERT_EQ(fresh.exit_code, 0) << fresh.error;
  EXPECT_EQ(fresh.out.find("not all from the same data"), std::string::npos) << fresh.out;
  EXPECT_NE(run("sweep s.yaml --out o --dry-run --fresh").out.find("4 ended here, 0 to do"), std::string::npos);
}

TEST_F(UserFiles, WhatAnotherBuildBeganIsBegunAnew) {
  write("c.txt", text("one thing"));
  write_sweep("[1]");
  ASSERT_EQ(run("sweep s.yaml --out o --quiet train.max_hours=1e-9").exit_code, 75);
  auto state = nlohmann::ordered_json::parse(read("o/pre-seed1/run.json"));
  ASSERT_EQ(state["status"], "stopped");
  std::string changed = read("o/pre-seed1/run.json");
  const std::string commit = state["stretches"][0]["commit"];
  ASSERT_FALSE(commit.empty());
  changed.replace(changed.find(commit), commit.size(), std::string(commit.size(), 'f'));
  write("o/pre-seed1/run.json", changed);
  EXPECT_NE(run("sweep s.yaml --out o --dry-run --fresh").out.find("begun here, by another build"), std::string::npos);
  const CommandResult fresh = run("sweep s.yaml --out o --quiet --fresh train.max_hours=0");
  ASSERT_EQ(fresh.exit_code, 0) << fresh.error;
  EXPECT_EQ(fresh.out.find('^'), std::string::npos) << fresh.out;
  EXPECT_EQ(read("o/pre-seed1/run.json").find("ffffffff"), std::string::npos);
}

TEST_F(UserFiles, ADamagedResultIsSaid) {
  train_run();
  std::string lines = read("r/eval.jsonl");
  const size_t at = lines.rfind("\"loss\":") + 7;
  lines[at] = lines[at] == '1' ? '2' : '1';
  write("r/eval.jsonl", lines);
  const CommandResult result = run("report r --csv - --out p.html");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("r: not read whole: "), std::string::npos) << result.error;
  EXPECT_NE(run("report r --json").out.find("\"remarks\":[\"r: not read whole: "), std::string::npos);
}

}  // namespace
}  // namespace siamese::cli

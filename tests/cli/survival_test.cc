// A disk that is full, a limit of hours, files edited by hand: what a run does about them.
#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class Survival : public CommandTest {
 protected:
  nlohmann::json run_file(const std::string& out) const { return nlohmann::json::parse(read(out + "/run.json")); }

  // The binary while no file may grow past `kilobytes`.
  CommandResult run_in(int kilobytes, const std::string& arguments) const {
    Background process(folder, arguments, "ulimit -f " + std::to_string(kilobytes * 2));  // in blocks of 512 bytes
    const int code = process.wait();
    return {code, read("out.txt"), read("error.txt")};
  }

  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read(file);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << file;
    write(file, text.replace(at, from.size(), to));
  }

  bool has_temporaries(const std::string& out) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / out)) {
      if (entry.path().string().find(".tmp-") != std::string::npos) return true;
    }
    return false;
  }
};

// 30 kB hold a line of metrics, 34 kB of weights not: the checkpoints fail, the run is recorded to its end.
TEST_F(Survival, ACheckpointThatCannotBeWrittenCostsOnlyItself) {
  ASSERT_EQ(run(tiny + "--out whole").exit_code, 0);
  ASSERT_EQ(run(tiny + "train.max_hours=1e-9 --out run").exit_code, 75);
  const std::string first = read("run/step1/model.safetensors");
  replace("run/config.yaml", "max_hours: 1e-09", "max_hours: 0");
  const CommandResult full = run_in(30, "resume run --quiet");
  EXPECT_EQ(full.exit_code, 1) << full.error;
  EXPECT_EQ(std::count(full.error.begin(), full.error.end(), '\n'), 3) << full.error;
  EXPECT_NE(full.error.find("siamese: step 2: not saved: cannot write"), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("siamese: step 4: not saved"), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("training goes on; the last good checkpoint is step1\n"), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("File too large; the last good checkpoint is step1; go on with: siamese resume run\n"),
            std::string::npos)
      << full.error;
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_EQ(read("run/latest"), "step1\n");
  EXPECT_TRUE(read("run/step1/model.safetensors") == first);
  EXPECT_FALSE(exists("run/step6"));
  EXPECT_FALSE(has_temporaries("run"));
  ASSERT_EQ(run("resume run --quiet").exit_code, 0);
  EXPECT_TRUE(read("run/step6/model.safetensors") == read("whole/step6/model.safetensors"));
  EXPECT_TRUE(has_lines(folder / "run/metrics.jsonl", 6));
}

// A full file of metrics ends the run, saved at the very step; the line that had no room is written by the resume.
TEST_F(Survival, MetricsThatCannotBeWrittenEndTheRunSaved) {
  const std::string longer = tiny + "train.steps=400 train.checkpoint_every=0 train.eval_every=0 train.record_every=1 ";
  ASSERT_EQ(run(longer + "--quiet --out whole").exit_code, 0);
  const CommandResult full = run_in(200, longer + "--quiet --out run");
  EXPECT_EQ(full.exit_code, 1) << full.error;
  EXPECT_EQ(std::count(full.error.begin(), full.error.end(), '\n'), 1) << full.error;
  const auto step = run_file("run")["step"].get<int64_t>();
  EXPECT_GT(step, 50);
  EXPECT_LT(step, 400);
  const std::string name = "step" + std::to_string(step);
  EXPECT_NE(full.error.find("siamese: cannot write 'run/metrics.jsonl': File too large; the last good checkpoint is " +
                            name + "; go on with: siamese resume run\n"),
            std::string::npos)
      << full.error;
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_EQ(read("run/latest"), name + "\n");
  EXPECT_FALSE(has_lines(folder / "run/metrics.jsonl", step));
  ASSERT_EQ(run("resume run --quiet").exit_code, 0);
  EXPECT_TRUE(read("run/step400/optim.safetensors") == read("whole/step400/optim.safetensors"));
  EXPECT_EQ(read("run/step400/trainer.json"), read("whole/step400/trainer.json"));
  EXPECT_EQ(read("run/" + name + "/trainer.json").find("unrecorded"), std::string::npos);  // it was saved again
  std::istringstream lines(read("run/metrics.jsonl"));
  int64_t expected = 0;
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(nlohmann::json::parse(line)["step"], ++expected);
  EXPECT_EQ(expected, 400);
}

TEST_F(Survival, ALimitOfHoursStopsEachProcess) {
  ASSERT_EQ(run(tiny + "--out whole").exit_code, 0);
  const CommandResult first = run(tiny + "train.max_hours=1e-9 --out run");
  EXPECT_EQ(first.exit_code, 75);
  EXPECT_NE(first.error.find("train.max_hours is over: stopped and saved; go on with: siamese resume run\n"),
            std::string::npos)
      << first.error;
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_EQ(read("run/latest"), "step1\n");
  EXPECT_EQ(run("resume run").exit_code, 75);
  EXPECT_EQ(read("run/latest"), "step2\n");
  replace("run/config.yaml", "max_hours: 1e-09", "max_hours: 10");
  EXPECT_EQ(run("resume run").exit_code, 0);
  EXPECT_TRUE(read("run/step6/model.safetensors") == read("whole/step6/model.safetensors"));
}

TEST_F(Survival, EditedConfigs) {
  ASSERT_EQ(run(tiny + "train.max_hours=1e-9 --out run").exit_code, 75);
  const std::string config = read("run/config.yaml");
  replace("run/config.yaml", "beta2: 0.95", "beta2: 0.99");
  replace("run/config.yaml", "digits: 1", "digits: 2");
  expect_refusal("resume run", 3,
                 "run/config.yaml: was changed since step1 was saved: data.digits: 2, and the checkpoint says 1; "
                 "optim.beta2: 0.99, and the checkpoint says 0.95: put it back to go on with the run, or make the same "
                 "change in run/step1/config.yaml if it is meant");
  write("run/config.yaml", config);
  replace("run/config.yaml", "  steps: 6", "  steps: 8");
  replace("run/config.yaml", "max_hours: 1e-09", "max_hours: 0");
  const CommandResult longer = run("resume run --quiet");
  EXPECT_EQ(longer.exit_code, 0) << longer.error;
  EXPECT_NE(longer.error.find("siamese: train.steps was 6 and is 8 now: the cosine schedule"), std::string::npos)
      << longer.error;
  EXPECT_TRUE(exists("run/step8"));
  for (const char* const nothing : {"", "# only a comment\n"}) {
    write("run/config.yaml", nothing);
    expect_refusal("resume run", 3, "run/config.yaml: is empty");
    write("run/step8/config.yaml", nothing);
    expect_refusal("eval run", 3, "run/step8/config.yaml: is empty");
  }
}

TEST_F(Survival, WeightsOfAnotherFormatOrNotFinite) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  const std::string weights = read("run/step6/model.safetensors");
  replace("run/step6/model.safetensors", "\"format_version\":\"1\"", "\"format_version\":\"9\"");
  const std::string complaint = "model.safetensors: format_version: expected 1, got '9'";
  expect_refusal("eval run", 3, complaint);
  expect_refusal(tiny + "init.from=run --out x", 3, complaint);
  replace("run/config.yaml", "  steps: 6", "  steps: 8");
  const CommandResult resumed = run("resume run --quiet");
  EXPECT_EQ(resumed.exit_code, 3);
  EXPECT_NE(resumed.error.find(complaint), std::string::npos) << resumed.error;
  // The last four bytes are the last number of the last tensor.
  std::string broken = weights;
  broken.replace(broken.size() - 4, 4, std::string("\x00\x00\xC0\x7F", 4));
  write("run/step6/model.safetensors", broken);
  expect_refusal("eval run", 3, " is not finite, so that the loss is not");
}

}  // namespace
}  // namespace siamese::cli

// sweep --jobs: several runs at once, each in a process of its own.
#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class SweepJobs : public CommandTest {
 protected:
  void write_sweep(const std::string& more,
                   const std::string& variants = "[{model.residual: pre}, {model.residual: siamese}]",
                   const std::string& seeds = "[1, 2]") const {
    write("s.yaml",
          "record: record.jsonl\nconfig: arithmetic-small\n"
          "set: {model.width: 16, model.blocks: 1, model.heads: 2, model.context: 24, train.batch: 2, "
          "eval.batches: 1, eval.problems: 1, data.digits: 1, " +
              more + "}\nvariants: " + variants + "\ngrid: {train.seed: " + seeds + "}\n");
  }
  nlohmann::json run_file(const std::string& name) const {
    return nlohmann::json::parse(read("runs/s/" + name + "/run.json"));
  }
  // The lines of a run without what the clock says.
  std::string losses(const std::string& dir) const {
    std::string text;
    std::istringstream lines(read(dir + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      text += json["loss"].dump() + " " + json["grad_norm"].dump() + "\n";
    }
    return text;
  }
  const std::vector<std::string> names = {"pre-seed1", "siamese-seed1", "pre-seed2", "siamese-seed2"};
};

TEST_F(SweepJobs, GiveTheSameRunsAndOneRecord) {
  write_sweep("train.steps: 4");
  const CommandResult two = run("sweep s.yaml --jobs 2 --out two");
  ASSERT_EQ(two.exit_code, 0) << two.error;
  EXPECT_TRUE(has_lines(folder / "record.jsonl", 4)) << read("record.jsonl");
  // What the user typed, not how the sweep called its worker.
  const auto first = nlohmann::json::parse(read("two/pre-seed1/run.json"));
  EXPECT_EQ(first["stretches"][0]["command"], "siamese sweep s.yaml --jobs 2 --out two");
  EXPECT_NE(two.error.find("[1/4] pre-seed1: begins\n"), std::string::npos) << two.error;
  EXPECT_NE(two.error.find("pre-seed1: finished, loss "), std::string::npos) << two.error;
  EXPECT_NE(two.error.find("siamese-seed2: step 4/4"), std::string::npos) << two.error;
  std::filesystem::remove(folder / "record.jsonl");
  const CommandResult one = run("sweep s.yaml --quiet --out one");
  ASSERT_EQ(one.exit_code, 0) << one.error;
  for (const auto& name : names) EXPECT_EQ(losses("two/" + name), losses("one/" + name)) << name;
  // The table has the same results; its last column is the speed.
  const auto table = [](const std::string& text) {
    std::string kept;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("| ")) kept += line.substr(0, line.rfind('|', line.size() - 2)) + "\n";
    }
    return kept;
  };
  EXPECT_EQ(table(two.out), table(one.out));
  EXPECT_TRUE(exists("two/report.html"));
}

TEST_F(SweepJobs, TheThreadsAreDivided) {
  write_sweep("train.steps: 2", "[{model.residual: pre}]", "[1, 2]");
  ASSERT_EQ(run("sweep s.yaml --jobs 2 --threads 1 --quiet").exit_code, 0) << read("error.txt");
  std::istringstream lines(read("record.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(nlohmann::json::parse(line)["stretches"][0]["threads"], 1);
  }
  EXPECT_NE(read("runs/s/pre-seed1/config.yaml").find("threads: 0"), std::string::npos);
}

TEST_F(SweepJobs, ARunThatFailsIsNamedAndTheOthersGoOn) {
  write_sweep("train.steps: 2", "[{model.residual: pre}, {model.residual: pre, init.from: nowhere, label: lost}]");
  const CommandResult result = run("sweep s.yaml --jobs 2 --quiet");
  EXPECT_EQ(result.exit_code, 3) << result.error;
  EXPECT_NE(result.error.find("2 of 4 runs failed: lost-seed1: its process ended with exit code 3: init.from: nowhere"),
            std::string::npos)
      << result.error;
  EXPECT_TRUE(has_lines(folder / "record.jsonl", 2));
  EXPECT_EQ(run_file("pre-seed2")["status"], "finished");
}

TEST_F(SweepJobs, ASignalReachesAllAndTheSameCommandGoesOn) {
  write_sweep("train.steps: 1000000, train.checkpoint_every: 0", "[{model.residual: pre}]", "[1, 2, 3]");
  Background sweep(folder, "sweep s.yaml --jobs 2");
  ASSERT_TRUE(sweep.wait_until([&] {
    return has_lines(folder / "runs/s/pre-seed1/metrics.jsonl", 3) &&
           has_lines(folder / "runs/s/pre-seed2/metrics.jsonl", 3);
  })) << read("error.txt");
  sweep.send(SIGTERM);
  EXPECT_EQ(sweep.wait(), 143) << read("error.txt");
  EXPECT_NE(read("error.txt").find("stopped and saved; go on with the same command"), std::string::npos);
  for (const char* const name : {"pre-seed1", "pre-seed2"}) {
    EXPECT_EQ(run_file(name)["status"], "stopped") << name;
    EXPECT_GE(run_file(name)["saved"], 3) << name;
  }
  EXPECT_FALSE(exists("runs/s/pre-seed3"));
  const int64_t saved = run_file("pre-seed1")["saved"];
  // One at a time now: the number of threads is no part of a run.
  Background again(folder, "sweep s.yaml");
  ASSERT_TRUE(again.wait_until([&] { return has_lines(folder / "runs/s/pre-seed1/metrics.jsonl", saved + 3); }))
      << read("error.txt");
  again.send(SIGTERM);
  EXPECT_EQ(again.wait(), 143) << read("error.txt");
}

TEST_F(SweepJobs, RunsOfAKilledSweepSaveAndStop) {
  write_sweep("train.steps: 1000000, train.checkpoint_every: 0", "[{model.residual: pre}]", "[1, 2]");
  Background sweep(folder, "sweep s.yaml --jobs 2 --quiet");
  const auto both = [&](const auto& holds) { return holds("pre-seed1") && holds("pre-seed2"); };
  ASSERT_TRUE(sweep.wait_until([&] {
    return both([&](const std::string& name) { return has_lines(folder / "runs/s" / name / "metrics.jsonl", 3); });
  })) << read("error.txt");
  sweep.send(SIGKILL);
  EXPECT_EQ(sweep.wait(), 1000 + SIGKILL);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto stopped = [&](const std::string& name) {
    return read("runs/s/" + name + "/run.json").find("\"stopped\"") != std::string::npos;
  };
  while (!both(stopped) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(both(stopped));
}

// Whoever comes second to a run leaves it to the first, and all is recorded once.
TEST_F(SweepJobs, TwoSweepsShareFolderAndRecord) {
  write_sweep("train.steps: 20");
  Background one(folder, "sweep s.yaml --jobs 2 --quiet");
  const CommandResult other = run("sweep s.yaml --jobs 2 --quiet");
  EXPECT_EQ(other.exit_code, 0) << other.error;
  EXPECT_EQ(one.wait(), 0) << read("error.txt");
  std::set<std::string> recorded;
  std::istringstream lines(read("record.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(recorded.insert(nlohmann::json::parse(line)["dir"]).second) << line;
  }
  EXPECT_EQ(recorded, (std::set<std::string>(names.begin(), names.end())));
}

TEST_F(SweepJobs, ASweepFileThatChangedMeanwhileIsNotFollowed) {
  write_sweep("train.steps: 2");
  // What a sweep would call, with the checksum of another plan.
  expect_refusal("sweep s.yaml --worker pre-seed1 --plan 0123456789abcdef --parent $$", 2,
                 "s.yaml: was changed since the sweep began");
  EXPECT_FALSE(exists("runs/s/pre-seed1"));
}

TEST_F(SweepJobs, ADryRunSaysHowLongItWillTakeAndChecksTheData) {
  write_sweep("train.steps: 300");
  const CommandResult timed = run("sweep s.yaml --dry-run");
  EXPECT_EQ(timed.exit_code, 0) << timed.error;
  EXPECT_NE(timed.out.find("4 runs to do, 1200 steps: about "), std::string::npos) << timed.out;
  EXPECT_NE(timed.out.find("(steps were timed; evaluations come on top)"), std::string::npos) << timed.out;
  EXPECT_FALSE(exists("runs"));
  write("t.yaml", "config: text-small\nset: {data.train: [none.txt]}\n");
  expect_refusal("sweep t.yaml --dry-run", 3, "data.train: no file, folder or match for 'none.txt'");
}

}  // namespace
}  // namespace siamese::cli

#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/runs/record_line.h"

namespace siamese::cli {
namespace {

class SweepRecords : public CommandTest {
 protected:
  // Four runs of a fraction of a second, two of which diverge.
  void write_sweep(const std::string& name, const std::string& variants, const std::string& seeds) const {
    std::filesystem::create_directories(folder / "sweeps");
    write("sweeps/" + name,
          "sweep: s\nrecord: ../results/s.jsonl\nconfig: arithmetic-small\n"
          "set: {model.width: 16, model.blocks: 1, model.heads: 2, model.context: 24, train.batch: 2, train.steps: 3, "
          "eval.batches: 1, eval.problems: 1, data.digits: 1, engine.threads: 1, train.max_skips: 2}\n"
          "variants: " +
              variants + "\ngrid: {train.seed: " + seeds + "}\n");
  }
  const std::string two = "[{model.residual: pre}, {model.residual: pre, init.std: 1e30, label: broken}]";

  int64_t lines() const {
    const std::string text = read("results/s.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  }
};

TEST_F(SweepRecords, ASweepGoesOnWithoutItsFolder) {
  write_sweep("half.yaml", two, "[1]");
  write_sweep("whole.yaml", two, "[1, 2]");
  ASSERT_EQ(run("sweep sweeps/half.yaml --quiet --out elsewhere").exit_code, 0);
  EXPECT_EQ(lines(), 2);
  std::filesystem::remove_all(folder / "elsewhere");

  const CommandResult plan = run("sweep sweeps/whole.yaml --dry-run");
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_NE(plan.out.find("pre-seed1     recorded: finished, loss "), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find("broken-seed1  recorded: diverged, loss -\n"), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find("pre-seed2     to do\n"), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find("4 runs: 2 recorded, 0 ended here, 2 to do\n"), std::string::npos) << plan.out;
  EXPECT_FALSE(exists("runs"));

  const CommandResult first = run("sweep sweeps/whole.yaml");
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_NE(first.error.find("4 runs: 2 recorded, 2 to train\n"), std::string::npos) << first.error;
  EXPECT_EQ(first.error.find("pre-seed1"), std::string::npos) << first.error;
  EXPECT_FALSE(exists("runs/s/pre-seed1"));
  EXPECT_TRUE(exists("runs/s/pre-seed2/step3"));
  EXPECT_EQ(lines(), 4);
  EXPECT_NE(first.out.find("|    2 |        0 |"), std::string::npos) << first.out;  // both seeds of pre
  EXPECT_NE(first.out.find("|    2 |        2 |"), std::string::npos) << first.out;  // both of broken

  const std::string record = read("results/s.jsonl");
  std::filesystem::remove_all(folder / "runs");
  const CommandResult again = run("sweep sweeps/whole.yaml engine.threads=2");
  ASSERT_EQ(again.exit_code, 0) << again.error;
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(again.error, "4 runs: 4 recorded, nothing to train\n");
  EXPECT_EQ(run("sweep sweeps/whole.yaml --jobs 2").error, "4 runs: 4 recorded, nothing to train\n");
  for (const char* const dir : {"pre-seed1", "pre-seed2", "broken-seed1", "broken-seed2"}) {
    EXPECT_FALSE(exists(std::string("runs/s/") + dir)) << dir;
  }
  EXPECT_EQ(read("results/s.jsonl"), record);
  EXPECT_NE(read("runs/s/report.html").find("from the record; no run folder here"), std::string::npos);
}

TEST_F(SweepRecords, WhatIsRecordedIsShownWithoutTrainingAndWithoutData) {
  write("book.txt", std::string(4096, 'a'));
  const auto write_text_sweep = [this](const std::string& seeds) {
    std::filesystem::create_directories(folder / "sweeps");
    write("sweeps/t.yaml",
          "sweep: t\nrecord: ../results/s.jsonl\nconfig: text-small\n"
          "set: {model.width: 16, model.blocks: 1, model.heads: 2, model.context: 24, train.batch: 2, train.steps: 3, "
          "data.train: [book.txt], eval.batches: 1, engine.threads: 1}\n"
          "variants: [{model.residual: pre}, {model.residual: post}]\ngrid: {train.seed: " +
              seeds + "}\n");
  };
  write_text_sweep("[1]");
  ASSERT_EQ(run("sweep sweeps/t.yaml --quiet --out elsewhere").exit_code, 0) << read("error.txt");
  std::filesystem::remove_all(folder / "elsewhere");
  std::filesystem::remove(folder / "book.txt");
  write_text_sweep("[1, 2]");
  const std::string record = read("results/s.jsonl");
  expect_refusal("sweep sweeps/t.yaml --dry-run", 3, "book.txt");  // what would be trained needs its data

  const CommandResult shown = run("sweep sweeps/t.yaml --recorded --out shown");
  ASSERT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_TRUE(shown.out.starts_with("4 runs: 2 recorded, 0 ended here, 2 to do\n| variant")) << shown.out;
  EXPECT_NE(shown.out.find("bits per byte"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("|    1 |        0 |"), std::string::npos) << shown.out;  // not: 1 of 2
  EXPECT_EQ(shown.out.find("|    2 |"), std::string::npos) << shown.out;
  EXPECT_TRUE(shown.out.ends_with("report: shown/report.html\n")) << shown.out;
  EXPECT_EQ(shown.error, "");
  EXPECT_TRUE(exists("shown/report.html"));
  EXPECT_FALSE(exists("shown/pre-seed2"));
  EXPECT_EQ(read("results/s.jsonl"), record);

  std::filesystem::remove(folder / "results/s.jsonl");
  const CommandResult none = run("sweep sweeps/t.yaml --recorded --out shown");
  EXPECT_EQ(none.exit_code, 0) << none.error;
  EXPECT_EQ(none.out, "4 runs: 0 recorded, 0 ended here, 4 to do\nreport: shown/report.html\n");
  EXPECT_EQ(run("sweep sweeps/t.yaml --recorded --dry-run").exit_code, 2);
}

TEST_F(SweepRecords, WhatEndedHereIsAddedWithoutTraining) {
  write_sweep("s.yaml", two, "[1]");
  ASSERT_EQ(run("sweep sweeps/s.yaml --quiet").exit_code, 0);
  const std::string metrics = read("runs/s/pre-seed1/metrics.jsonl");
  const auto recorded = nlohmann::json::parse(read("results/s.jsonl").substr(0, read("results/s.jsonl").find('\n')));
  std::filesystem::remove_all(folder / "results");
  EXPECT_NE(run("sweep sweeps/s.yaml --dry-run").out.find("0 recorded, 2 ended here, 0 to do"), std::string::npos);
  // Other threads, the same run.
  ASSERT_EQ(run("sweep sweeps/s.yaml --quiet engine.threads=2").exit_code, 0);
  EXPECT_EQ(read("runs/s/pre-seed1/metrics.jsonl"), metrics);
  EXPECT_EQ(lines(), 2);
  EXPECT_EQ(nlohmann::json::parse(read("results/s.jsonl").substr(0, read("results/s.jsonl").find('\n'))), recorded);
}

TEST_F(SweepRecords, ALineOfAnotherBuildIsMarkedAndCanBeMadeAfresh) {
  write_sweep("s.yaml", two, "[1]");
  const CommandResult first = run("sweep sweeps/s.yaml --quiet");
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(first.out.find('^'), std::string::npos) << first.out;
  const std::string record = read("results/s.jsonl");
  const size_t end = record.find('\n');
  runs::RecordLine line = runs::read_record_line(record.substr(0, end), "record");
  line.stretches.front().build.commit = std::string(40, 'f');
  write("results/s.jsonl", runs::to_line(line) + record.substr(end));
  std::filesystem::remove_all(folder / "runs");
  const CommandResult mixed = run("sweep sweeps/s.yaml --quiet");
  ASSERT_EQ(mixed.exit_code, 0) << mixed.error;
  EXPECT_NE(mixed.out.find(" ^ "), std::string::npos) << mixed.out;
  EXPECT_NE(mixed.out.find("\n^ not all by one build: "), std::string::npos) << mixed.out;
  EXPECT_NE(mixed.out.find("(ffffffffff"), std::string::npos) << mixed.out;
  EXPECT_NE(run("sweep sweeps/s.yaml --dry-run").out.find("2 recorded, 0 ended here, 0 to do"), std::string::npos);
  EXPECT_NE(run("sweep sweeps/s.yaml --dry-run --fresh").out.find("1 recorded, 0 ended here, 1 to do"),
            std::string::npos);
  const CommandResult fresh = run("sweep sweeps/s.yaml --quiet --fresh");
  ASSERT_EQ(fresh.exit_code, 0) << fresh.error;
  EXPECT_TRUE(exists("runs/s/" + line.dir));
  EXPECT_EQ(fresh.out.find('^'), std::string::npos) << fresh.out;
  EXPECT_EQ(lines(), 2);
  EXPECT_EQ(read("results/s.jsonl").find("ffffffffff"), std::string::npos);
}

TEST_F(SweepRecords, AnOverrideKeepsOutOfTheRecordUnlessOneIsNamed) {
  write_sweep("s.yaml", two, "[1]");
  ASSERT_EQ(run("sweep sweeps/s.yaml --quiet").exit_code, 0);
  const std::string record = read("results/s.jsonl");
  const CommandResult smoke = run("sweep sweeps/s.yaml train.steps=2 --out smoke");
  ASSERT_EQ(smoke.exit_code, 0) << smoke.error;
  EXPECT_NE(smoke.error.find("neither read nor written, because of train.steps=2"), std::string::npos) << smoke.error;
  EXPECT_EQ(read("results/s.jsonl"), record);
  EXPECT_FALSE(exists("smoke/recorded.jsonl"));
  ASSERT_EQ(run("sweep sweeps/s.yaml train.steps=2 --quiet --out named --record mine.jsonl").exit_code, 0);
  EXPECT_EQ(read("results/s.jsonl"), record);
  const std::string mine = read("mine.jsonl");
  EXPECT_EQ(std::count(mine.begin(), mine.end(), '\n'), 2);
  // A stale recorded.jsonl must not lend its results to runs that have none.
  std::filesystem::remove_all(folder / "named/pre-seed1");
  ASSERT_EQ(run("sweep sweeps/s.yaml train.steps=2 --quiet --out named").exit_code, 0);
  EXPECT_FALSE(exists("named/recorded.jsonl"));
  EXPECT_TRUE(exists("named/pre-seed1/step2"));
}

TEST_F(SweepRecords, ABrokenRecordStopsTheSweepBeforeItStarts) {
  write_sweep("s.yaml", two, "[1]");
  std::filesystem::create_directories(folder / "results");
  write("results/s.jsonl", "<<<<<<< ours\n");
  expect_refusal("sweep sweeps/s.yaml --quiet", 3, "s.jsonl: line 1: not valid JSON: '<<<<<<< ours'");
  EXPECT_FALSE(exists("runs"));
}

TEST_F(SweepRecords, AnInterruptedSweepKeepsWhatItHas) {
  const std::string endless = "[{model.residual: pre}, {model.residual: pre, train.steps: 1000000, label: long}]";
  write_sweep("s.yaml", endless, "[1]");
  // Stops the sweep when its second run has done so many steps.
  const auto stop_at = [this](int64_t steps) {
    Background sweep(folder, "sweep sweeps/s.yaml");
    EXPECT_TRUE(sweep.wait_until([&] { return has_lines(folder / "runs/s/long-seed1/metrics.jsonl", steps); }));
    sweep.send(SIGTERM);
    EXPECT_EQ(sweep.wait(), 143) << read("error.txt");
  };
  stop_at(3);
  EXPECT_NE(read("error.txt").find("stopped and saved; go on with the same command"), std::string::npos);
  EXPECT_EQ(lines(), 1);
  const auto step = [this] { return nlohmann::json::parse(read("runs/s/long-seed1/run.json"))["step"].get<int64_t>(); };
  const int64_t reached = step();
  EXPECT_NE(run("sweep sweeps/s.yaml --dry-run").out.find("long-seed1  to do: begun here"), std::string::npos);
  stop_at(reached + 3);
  EXPECT_NE(read("error.txt").find("2 runs: 1 recorded, 1 to train\n"), std::string::npos) << read("error.txt");
  EXPECT_GE(step(), reached + 3);
  EXPECT_EQ(lines(), 1);
  // What would be continued has to be the run that is asked for, up to its limits.
  expect_refusal("sweep sweeps/s.yaml --quiet engine.recompute=1", 2, "another config");
  EXPECT_EQ(run("sweep sweeps/s.yaml --dry-run engine.threads=2").exit_code, 0);
}

// The hours are those of the whole sweep, and no part of what a run is: neither for its record nor for going on.
TEST_F(SweepRecords, ALimitOfHoursStopsTheSweepAndIsTakenAnew) {
  write_sweep("s.yaml", two, "[1]");
  const CommandResult first = run("sweep sweeps/s.yaml train.max_hours=1e-9");
  EXPECT_EQ(first.exit_code, 75) << first.error;
  EXPECT_NE(first.error.find("train.max_hours is over: stopped and saved; go on with the same command"),
            std::string::npos)
      << first.error;
  EXPECT_TRUE(exists("runs/s/pre-seed1/step1"));
  EXPECT_FALSE(exists("runs/s/broken-seed1"));
  const CommandResult second = run("sweep sweeps/s.yaml train.max_hours=2 train.keep_last=1");
  EXPECT_EQ(second.exit_code, 0) << second.error;
  EXPECT_FALSE(exists("runs/s/pre-seed1/step1"));
  EXPECT_EQ(lines(), 2);
  EXPECT_NE(run("sweep sweeps/s.yaml --dry-run --out other").out.find("2 recorded"), std::string::npos);
}

}  // namespace
}  // namespace siamese::cli

// The sweep engine as a library: what a caller sees without the command line.
#include "siamese/train/sweep.h"

#include <csignal>

#include "tests/support/errors.h"
#include "tests/train/tiny_run.h"

#include "siamese/io/aside.h"
#include "siamese/train/sweep_estimate.h"

namespace siamese::train {
namespace {

using siamese::testing::expect_error;

// Two variants of a run of three steps, two seeds.
SweepPlan tiny_plan(const std::vector<std::string>& overrides = {}) {
  SweepPlan plan;
  plan.name = "s";
  for (const char* const seed : {"1", "2"}) {
    for (const char* const scheme : {"pre", "siamese"}) {
      std::vector<std::string> all = {"train.steps=3", "train.eval_every=0", "train.seed=" + std::string(seed),
                                      "model.residual=" + std::string(scheme)};
      all.insert(all.end(), overrides.begin(), overrides.end());
      plan.runs.push_back({std::string(scheme) + "-seed" + seed, scheme, tiny_config(all)});
    }
  }
  return plan;
}

struct Told {
  std::vector<std::string> said;
  std::vector<std::string> by_workers;
  int ended = 0;

  SweepHooks hooks() {
    return {.run = {},
            .say = [this](const std::string& text) { said.push_back(text); },
            .run_ended = [this] { ++ended; },
            .worker = {},
            .worker_said = [this](const PlannedRun& run,
                                  const std::string& line) { by_workers.push_back(run.dir + ": " + line); }};
  }
  bool has(const std::string& text) const {
    return std::any_of(said.begin(), said.end(), [&](const std::string& line) { return line.find(text) != line.npos; });
  }
};

TEST(Sweep, TrainsEveryRunOnceAndKnowsWhereItStands) {
  const TemporaryFolder folder("sweep");
  Told told;
  Sweep sweep(tiny_plan(), {.out = folder / "out", .record = folder / "record.jsonl"});
  sweep.check();
  EXPECT_EQ(sweep.standings()[0].text, "to do");
  EXPECT_EQ(sweep.train(told.hooks()).status, RunStatus::finished);
  EXPECT_EQ(told.ended, 4);
  EXPECT_EQ(io::read_json_lines(folder / "record.jsonl").size(), 4u);
  EXPECT_EQ(io::read_json_lines(folder / "out/recorded.jsonl").size(), 4u);
  for (const RunStanding& one : sweep.standings()) EXPECT_EQ(one.standing, Standing::recorded) << one.text;
  // The second of each pair is begun when the first has ended; nothing was there before.
  EXPECT_EQ(told.said.front(), "[1/4] pre-seed1");
  // Again: nothing to do, which is one line, and nothing is written twice.
  told.said.clear();
  EXPECT_EQ(sweep.train(told.hooks()).status, RunStatus::finished);
  EXPECT_EQ(told.ended, 4);
  EXPECT_EQ(told.said, std::vector<std::string>{"4 runs: 4 recorded, nothing to train"});
  EXPECT_EQ(io::read_json_lines(folder / "record.jsonl").size(), 4u);
  EXPECT_EQ(io::read_json_lines(folder / "out/recorded.jsonl").size(), 4u);
}

TEST(Sweep, WhatIsLeftAsItStandsIsOneLineForAll) {
  const TemporaryFolder folder("sweep_left");
  Told told;
  const SweepPlan plan = tiny_plan();
  SweepPlan one = plan;
  one.runs.resize(1);
  Sweep(one, {.out = folder / "out", .record = folder / "record.jsonl"}).train({});
  std::filesystem::remove_all(folder / "out");
  one.runs[0] = plan.runs[2];
  Sweep(one, {.out = folder / "out"}).train({});
  Sweep(plan, {.out = folder / "out", .record = folder / "record.jsonl"}).train(told.hooks());
  EXPECT_EQ(told.said, (std::vector<std::string>{"4 runs: 1 recorded, 1 ended here, 2 to train", "[2/4] siamese-seed1",
                                                 "[4/4] siamese-seed2"}));
  EXPECT_EQ(io::read_json_lines(folder / "record.jsonl").size(), 4u);  // the one that had ended here, too
}

// Its process warned of them and went on; nobody will resume it.
TEST(Sweep, RemovesWhatARunThatHasEndedCouldNot) {
  const TemporaryFolder folder("sweep");
  Told told;
  const SweepPlan plan = tiny_plan({"train.checkpoint_every=1", "train.keep_last=1"});
  const SweepOptions options = {.out = folder / "out", .record = folder / "record.jsonl"};
  Sweep(plan, options).train(told.hooks());
  const std::filesystem::path run = folder / "out" / plan.runs[0].dir;
  std::filesystem::copy(run / "step3", run / "step2");
  const std::filesystem::path aside = io::aside_name(run / "step1", io::Aside::writing);
  std::filesystem::create_directory(aside);
  std::filesystem::create_directory(run / "step1.tmp-1");  // somebody else's
  Sweep(tiny_plan({"train.checkpoint_every=1", "train.keep_last=0"}), options).train(told.hooks());
  EXPECT_FALSE(std::filesystem::exists(run / "step2"));  // as its own config says
  EXPECT_FALSE(std::filesystem::exists(aside));
  EXPECT_TRUE(std::filesystem::exists(run / "step3"));
  EXPECT_TRUE(std::filesystem::exists(run / "step1.tmp-1"));
}

TEST(Sweep, OneThatFailsDoesNotKeepTheOthers) {
  const TemporaryFolder folder("sweep_failure");
  Told told;
  SweepPlan plan = tiny_plan();
  plan.runs[1].config.init.from = folder / "nowhere";
  Sweep sweep(plan, {.out = folder / "out"});
  sweep.check();
  expect_error<Error>([&] { sweep.train(told.hooks()); },
                      {"1 of 4 runs failed: siamese-seed1: init.from: ", "nowhere"});
  EXPECT_EQ(told.ended, 3);
  EXPECT_TRUE(told.has("siamese-seed1: failed: init.from: "));
  EXPECT_EQ(sweep.standings()[3].standing, Standing::ended_here);
  try {
    sweep.train({});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_data);
  }
}

TEST(Sweep, MissingDataAreFoundBeforeAnythingIsWritten) {
  const TemporaryFolder folder("sweep_data");
  SweepPlan plan = tiny_plan({"data.source=text", "data.train=[" + (folder / "none.txt").string() + "]"});
  Sweep sweep(plan, {.out = folder / "out"});
  expect_error<DataError>([&] { sweep.check(); }, {"data.train", "none.txt"});
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  // Where something is recorded, that can be shown without.
  SweepPlan both = tiny_plan();
  Sweep(both, {.out = folder / "whole", .record = folder / "record.jsonl"}).train({});
  both.runs.push_back(plan.runs.front());
  both.runs.back().dir = "text";
  const SweepOptions elsewhere = {.out = folder / "out", .record = folder / "record.jsonl"};
  expect_error<DataError>([&] { Sweep(both, elsewhere).check(); },
                          {"none.txt", "; --recorded shows what is recorded, without data"});
  EXPECT_NO_THROW(Sweep(both, elsewhere).check_folder());
  EXPECT_EQ(Sweep(both, elsewhere).standings().back().text, "to do");
}

TEST(Sweep, AStopIsHeardBetweenSteps) {
  const TemporaryFolder folder("sweep_stop");
  Told told;
  SweepHooks hooks = told.hooks();
  int left = 5;
  hooks.run.stop_signal = [&] { return --left == 0 ? SIGINT : 0; };
  Sweep sweep(tiny_plan(), {.out = folder / "out"});
  const RunResult result = sweep.train(hooks);
  EXPECT_EQ(result.status, RunStatus::stopped);
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(sweep.standings()[0].standing, Standing::ended_here);
  EXPECT_EQ(sweep.standings()[1].standing, Standing::begun_here);
  EXPECT_EQ(sweep.standings()[2].standing, Standing::to_do);
  EXPECT_EQ(sweep.train({}).status, RunStatus::finished);
}

TEST(Sweep, SeveralAtOnceNeedACommand) {
  const TemporaryFolder folder("sweep_jobs");
  Sweep sweep(tiny_plan(), {.out = folder / "out", .jobs = 2});
  expect_error<UsageError>([&] { sweep.train({}); }, {"jobs: expected 1"});
}

// The workers here are a shell: what they do is up to the test.
TEST(Sweep, AWorkerThatFailsIsNamedWithItsLastWords) {
  const TemporaryFolder folder("sweep_workers");
  Told told;
  SweepHooks hooks = told.hooks();
  hooks.worker = [](const PlannedRun& run) -> std::vector<std::string> {
    if (run.dir == "siamese-seed1") return {"/bin/sh", "-c", "echo one; echo 'siamese: bad file' >&2; exit 3"};
    if (run.dir == "pre-seed2") return {"/bin/sh", "-c", "kill -9 $$"};
    return {"/bin/sh", "-c", "exit 1"};
  };
  Sweep sweep(tiny_plan(), {.out = folder / "out", .jobs = 3});
  expect_error<Error>([&] { sweep.train(hooks); },
                      {"4 of 4 runs failed: ", "siamese-seed1: its process ended with exit code 3: bad file",
                       "pre-seed2: its process ended with signal 9", "pre-seed1: its process ended with exit code 1"});
  EXPECT_EQ(told.by_workers, (std::vector<std::string>{"siamese-seed1: one", "siamese-seed1: siamese: bad file"}));
}

TEST(Sweep, AStopReachesTheWorkers) {
  const TemporaryFolder folder("sweep_worker_stop");
  Told told;
  SweepHooks hooks = told.hooks();
  int started = 0;
  hooks.worker = [&](const PlannedRun&) -> std::vector<std::string> {
    ++started;
    return {"/bin/sh", "-c", "trap 'echo saved; exit 143' TERM; echo ready; while :; do sleep 0.01; done"};
  };
  hooks.run.stop_signal = [&] { return told.by_workers.size() >= 2 ? SIGTERM : 0; };
  Sweep sweep(tiny_plan(), {.out = folder / "out", .jobs = 2});
  const RunResult result = sweep.train(hooks);
  EXPECT_EQ(result.status, RunStatus::stopped);
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_EQ(started, 2);
  EXPECT_EQ(std::count_if(told.by_workers.begin(), told.by_workers.end(),
                          [](const std::string& line) { return line.ends_with(": saved"); }),
            2);
}

TEST(Sweep, TheHoursOfASweepStopItsWorkers) {
  const TemporaryFolder folder("sweep_hours");
  SweepHooks hooks;
  hooks.worker = [](const PlannedRun&) -> std::vector<std::string> { return {"/bin/sh", "-c", "exec sleep 600"}; };
  Sweep sweep(tiny_plan({"train.max_hours=1e-5"}), {.out = folder / "out", .jobs = 2});
  const RunResult result = sweep.train(hooks);
  EXPECT_EQ(result.status, RunStatus::stopped);
  EXPECT_EQ(result.signal, 0);
}

runs::RecordLine line_of(const PlannedRun& run, double step_ms, const std::string& cpu) {
  runs::RecordLine line;
  line.stretches.resize(1);
  line.config = result_config(run.config);
  line.summary.step_ms = step_ms;
  line.stretches[0].threads = run.config.engine.threads;
  line.stretches[0].cpu = cpu;
  return line;
}

TEST(SweepEstimate, ComesFromRunsOfTheSameKind) {
  const SweepPlan plan = tiny_plan();
  const std::vector<RunToDo> runs = {{&plan.runs[0], 0}, {&plan.runs[1], 1}, {&plan.runs[2], 0}};
  // pre takes 2 s a step, siamese 10 s; seed and learning rate do not matter.
  std::vector<runs::RecordLine> ended = {line_of(plan.runs[2], 2000, cpu_name()),
                                         line_of(plan.runs[3], 10000, cpu_name())};
  const SweepEstimate one = estimate_sweep(runs, ended, 1, MeasureSteps::never);
  EXPECT_EQ(one.steps, 8);
  EXPECT_DOUBLE_EQ(one.seconds, 3 * 2 + 2 * 10 + 3 * 2);
  EXPECT_EQ(one.text(), "3 runs to do, 8 steps: about 32s (from runs that ended; evaluations come on top)");
  const SweepEstimate two = estimate_sweep(runs, ended, 2, MeasureSteps::never);
  EXPECT_DOUBLE_EQ(two.seconds, 20);  // no run is divided
  EXPECT_NE(two.text().find("about 20s with 2 at once"), std::string::npos) << two.text();
  ended[1].stretches[0].cpu = "another";
  const SweepEstimate part = estimate_sweep(runs, ended, 1, MeasureSteps::never);
  EXPECT_DOUBLE_EQ(part.seconds, 12);
  EXPECT_EQ(part.unknown, 2);
  EXPECT_NE(part.text().find("2 steps of other models not counted"), std::string::npos) << part.text();
  ended[0].stretches[0].threads += 1;
  EXPECT_NE(estimate_sweep(runs, ended, 1, MeasureSteps::worthwhile).text().find("not known yet"), std::string::npos);
  EXPECT_EQ(estimate_sweep({}, ended, 1, MeasureSteps::never).text(), "nothing to do");
}

TEST(SweepEstimate, StepsAreTimedWhereNothingIsKnown) {
  const SweepPlan plan = tiny_plan();
  const SweepEstimate timed = estimate_sweep({{&plan.runs[0], 0}, {&plan.runs[2], 0}}, {}, 1, MeasureSteps::always);
  EXPECT_EQ(timed.timed, 1u);  // one kind
  EXPECT_EQ(timed.unknown, 0);
  EXPECT_GT(timed.seconds, 0);
  EXPECT_NE(timed.text().find("(steps were timed"), std::string::npos) << timed.text();
}

}  // namespace
}  // namespace siamese::train

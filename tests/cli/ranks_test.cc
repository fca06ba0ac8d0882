// One run by several processes under mpirun.
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class UnderMpi : public CommandTest {
 protected:
  static std::string ranks(int count) {
    return "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive mpirun "
           "--oversubscribe "
           "--bind-to none -n " +
           std::to_string(count);
  }
  void expect_ok(const std::string& arguments, const std::string& prefix = "") const {
    const CommandResult result = run(arguments, prefix);
    ASSERT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
  }
  // The lines of a file without what the clock says.
  std::vector<nlohmann::json> lines(const std::string& file) const {
    std::vector<nlohmann::json> all;
    std::istringstream text(read(file));
    for (std::string line; std::getline(text, line);) {
      auto json = nlohmann::json::parse(line);
      for (const char* const clock : {"step_ms", "tokens_per_s", "samples_per_s", "checksum"}) json.erase(clock);
      all.push_back(json);
    }
    return all;
  }
  void expect_same_bits(const std::string& a, const std::string& b) const {
    EXPECT_EQ(lines(a + "/metrics.jsonl"), lines(b + "/metrics.jsonl"));
    EXPECT_EQ(lines(a + "/eval.jsonl"), lines(b + "/eval.jsonl"));
    expect_same_tensors(a, b);
  }
  void expect_same_tensors(const std::string& a, const std::string& b) const {
    std::set<std::string> names;
    for (const std::string& run : {a, b}) {
      for (const auto& file : std::filesystem::directory_iterator(folder / run / "step6")) {
        if (file.path().extension() == ".safetensors") names.insert(file.path().filename().string());
      }
    }
    EXPECT_GE(names.size(), 2u);
    for (const std::string& name : names) EXPECT_EQ(read(a + "/step6/" + name), read(b + "/step6/" + name)) << name;
  }
  void expect_same_losses(const std::string& a, const std::string& b) const {
    const auto one = lines(a + "/metrics.jsonl"), other = lines(b + "/metrics.jsonl");
    ASSERT_EQ(one.size(), 6u);
    ASSERT_EQ(other.size(), 6u);
    for (size_t i = 0; i < one.size(); ++i) {
      for (const char* const name : {"loss", "grad_norm"}) {
        const double expected = one[i][name].get<double>();
        EXPECT_NEAR(other[i][name].get<double>(), expected, 1e-4 * std::fabs(expected)) << name << " of step " << i + 1;
      }
    }
  }
  // Four micro-batches a step.
  const std::string train = tiny + "train.micro_batch=1 --quiet ";
};

TEST_F(UnderMpi, OneRankIsTheSameRunToTheBit) {
  expect_ok(train + "--out alone");
  expect_ok(train + "--out one", ranks(1));
  expect_same_bits("alone", "one");
}

TEST_F(UnderMpi, EveryFamilyTrainsAsOneProcessDoes) {
  const std::string small =
      "model.width=16 model.blocks=2 model.heads=2 train.batch=4 train.steps=6 "
      "train.micro_batch=1 train.eval_every=3 eval.held_out=4 engine.threads=1 --quiet ";
  const std::string text = "model.context=24 data.digits=1 eval.problems=2 ";
  const std::pair<std::string, std::string> families[] = {
      {"lm", "arithmetic-small train.skip_outliers=3 train.ema=0.9 model.dropout.embedding=0.1 " + text},
      {"moe", "moe-micro " + text},
      {"vit", "vit-micro model.image=16 model.drop_path=0.3 data.augment.mixup=0.8 "},
      {"dit", "dit-micro model.image=16 eval.samples=0 "}};
  for (const auto& [name, recipe] : families) {
    SCOPED_TRACE(name);
    const std::string command = "train " + recipe + small;
    expect_ok(command + "--out " + name, "");
    expect_ok(command + "--out " + name + "2", ranks(2));
    expect_ok(command + "--out " + name + "2again", ranks(2));
    expect_ok(command + "engine.recompute=1 --out " + name + "3", ranks(3));
    expect_same_losses(name, name + "2");
    expect_same_losses(name, name + "3");
    expect_same_bits(name + "2", name + "2again");
  }
}

TEST_F(UnderMpi, GoesOnWithAnyNumberOfRanks) {
  expect_ok(train + "--out whole", ranks(2));
  expect_ok(train + "train.steps=4 --out cut", ranks(2));
  expect_ok("resume cut train.steps=6 --quiet", ranks(2));
  expect_same_tensors("whole", "cut");
  expect_ok(train + "train.steps=4 --out fewer", ranks(4));
  expect_ok("resume fewer train.steps=6 --quiet");
  expect_same_losses("whole", "fewer");
  expect_ok(train + "train.steps=4 --out more");
  expect_ok("resume more train.steps=6 --quiet", ranks(3));
  expect_same_losses("whole", "more");
  const auto run = nlohmann::json::parse(read("more/run.json"));
  EXPECT_EQ(run["stretches"][0]["ranks"], 1);
  EXPECT_EQ(run["stretches"][1]["ranks"], 3);
}

// Each rank updates its part of the weights. The norm is added in another order, the rest is the same.
TEST_F(UnderMpi, TheOptimizerDivided) {
  for (const std::string optimizer : {"adamw", "muon"}) {
    SCOPED_TRACE(optimizer);
    const std::string command = train + "train.ema=0.9 train.record_every=2 optim.name=" + optimizer + " ";
    const std::string divided = command + "engine.shard=optimizer ";
    expect_ok(command + "--out whole_" + optimizer, ranks(3));
    expect_ok(divided + "--out divided_" + optimizer, ranks(3));
    expect_ok(divided + "--out again_" + optimizer, ranks(3));
    expect_same_losses("whole_" + optimizer, "divided_" + optimizer);
    expect_same_bits("divided_" + optimizer, "again_" + optimizer);
    // Shards that one process reads, and a cut that goes on with the same ranks to the same bits.
    expect_ok("eval divided_" + optimizer);
    expect_ok("eval divided_" + optimizer + " eval.averaged=true");
    expect_ok(divided + "train.steps=4 --out cut_" + optimizer, ranks(3));
    expect_ok("resume cut_" + optimizer + " train.steps=6 --quiet", ranks(3));
    expect_same_tensors("divided_" + optimizer, "cut_" + optimizer);
    expect_ok(divided + "train.steps=4 --out other_" + optimizer, ranks(2));
    expect_ok("resume other_" + optimizer + " train.steps=5 --quiet", ranks(4));
    expect_ok("resume other_" + optimizer + " train.steps=6 --quiet");
    expect_same_losses("whole_" + optimizer, "other_" + optimizer);
  }
}

TEST_F(UnderMpi, MoreRanksThanMicroBatches) {
  const CommandResult result = run(tiny + "train.micro_batch=2 --quiet --out x", ranks(3));
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_NE(result.error.find("siamese: expected at most 2 ranks, one for each micro-batch (train.batch 4, "
                              "train.micro_batch 2), got 3\n"),
            std::string::npos)
      << result.error;
  EXPECT_FALSE(exists("x"));
}

// What all ranks would say is said once.
TEST_F(UnderMpi, RefusalsAreSaidOnce) {
  const auto times = [](const std::string& text, const std::string& what) {
    int count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  };
  const CommandResult wrong = run(tiny + "optim.lrr=1 --out x", ranks(2));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(times(wrong.error, "siamese: "), 1) << wrong.error;
  const CommandResult verb = run("schemes", ranks(2));
  EXPECT_EQ(verb.exit_code, 2);
  EXPECT_EQ(times(verb.error, "siamese: schemes: expected one process, got 2 (mpirun)"), 1) << verb.error;
}

// Each trains runs of its own: as many lines in the record as runs, the same as one process writes.
TEST_F(UnderMpi, ASweepGivesEachRankItsRuns) {
  write("s.yaml", "sweep: s\nconfig: '" SIAMESE_CONFIG_FOLDER
                  "/../tests/cli/tiny.yaml'\nvariants:\n  - {model.residual: pre}\n  - {model.residual: post}\n  - "
                  "{model.residual: siamese}\nrecord: record.jsonl\n");
  expect_ok("sweep s.yaml --out alone --record alone.jsonl --quiet");
  expect_ok("sweep s.yaml --out shared --quiet", ranks(2));
  const auto losses = [&](const std::string& file) {
    std::map<std::string, double> found;
    for (const auto& line : lines(file)) found[line["variant"]] = line["val_loss"].get<double>();
    return found;
  };
  EXPECT_EQ(lines("record.jsonl").size(), 3u);
  EXPECT_EQ(losses("record.jsonl"), losses("alone.jsonl"));
  EXPECT_TRUE(exists("shared/report.html"));
  // One run that cannot be trained: the others are, and rank 0 tells.
  std::filesystem::create_directories(folder / "broken/post");
  write("broken/post/mine.txt", "x");
  const CommandResult failed = run("sweep s.yaml --out broken --record b.jsonl --quiet", ranks(2));
  EXPECT_EQ(failed.exit_code, 2) << failed.error;
  EXPECT_NE(failed.error.find("1 of 3 runs failed: post: "), std::string::npos) << failed.error;
  EXPECT_EQ(lines("b.jsonl").size(), 2u);
}

// An endless run of two ranks, of which the second's number is known.
class EndlessUnderMpi : public UnderMpi {
 protected:
  EndlessUnderMpi() {
    write("rank.sh",
          "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" = 0 ] || echo $$ > second\nexec '" SIAMESE_BINARY "' \"$@\"\n");
  }
  std::string command(const std::string& arguments) const {
    return "exec " + ranks(2) + " sh rank.sh " + arguments + " --quiet > out.txt 2> error.txt < /dev/null";
  }
  // Once something is saved, `signal` to the second rank; how mpirun ended.
  int stop_second(int signal) const {
    Background job(folder, "",
                   command(tiny + "train.micro_batch=1 train.steps=1000000 train.checkpoint_every=1 train.keep_last=2 "
                                  "train.eval_every=0 --out x"));
    EXPECT_TRUE(job.wait_until([&] { return exists("x/latest") && exists("second"); })) << read("error.txt");
    kill(static_cast<pid_t>(std::stol(read("second"))), signal);
    return job.wait();
  }
};

TEST_F(EndlessUnderMpi, ARankThatDiesEndsTheJob) {
  EXPECT_NE(stop_second(SIGKILL), 0);
  expect_ok("eval x");
  expect_ok("resume x train.steps=100000 train.max_hours=1e-6 --quiet || test $? = 75");
}

// A stopped process is one that hangs: it neither answers nor dies. Inside a step, that is: the run saves before, and
// no more while it is stopped, because others wait for a save without a limit.
TEST_F(EndlessUnderMpi, ARankThatHangsEndsTheJob) {
  expect_ok(train + "train.steps=2 --out x", ranks(2));
  {
    Background job(
        folder, "",
        command("resume x train.steps=1000000 train.checkpoint_every=0 train.eval_every=0 engine.timeout=3"));
    const auto steps = [&] {
      const std::string metrics = read("x/metrics.jsonl");
      return std::count(metrics.begin(), metrics.end(), '\n');
    };
    EXPECT_TRUE(job.wait_until([&] { return exists("second") && steps() > 4; })) << read("error.txt");
    kill(static_cast<pid_t>(std::stol(read("second"))), SIGSTOP);
    EXPECT_NE(job.wait(), 0);
  }
  char host[256] = "";
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  const std::string error = read("error.txt");
  const std::string line =
      "siamese: rank 0 on " + std::string(host) + ": the other ranks did not answer for 3 s (engine.timeout)";
  EXPECT_NE(error.find(line), std::string::npos) << error;
  expect_ok("eval x");
  expect_ok("resume x train.steps=4 --quiet", ranks(2));
}

TEST_F(EndlessUnderMpi, ASignalToAnyRankSavesOnce) {
  EXPECT_EQ(stop_second(SIGUSR1), 128 + SIGUSR1) << read("error.txt");
  EXPECT_NE(read("error.txt").find("stopped and saved; go on with: siamese resume x"), std::string::npos)
      << read("error.txt");
  const auto info = nlohmann::json::parse(read("x/run.json"));
  EXPECT_EQ(info["status"], "stopped");
  EXPECT_EQ(read("x/latest"), "step" + std::to_string(info["step"].get<int64_t>()) + "\n");
}

}  // namespace
}  // namespace siamese::cli

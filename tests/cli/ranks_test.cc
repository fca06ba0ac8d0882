// One run by several processes under mpirun.
#include <cmath>

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
    for (const char* const file : {"/step6/model.safetensors", "/step6/optim.safetensors"}) {
      EXPECT_EQ(read(a + file), read(b + file)) << file;
    }
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
  EXPECT_EQ(read("whole/step6/model.safetensors"), read("cut/step6/model.safetensors"));
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

// An endless run of two ranks, of which the second's number is known.
class EndlessUnderMpi : public UnderMpi {
 protected:
  EndlessUnderMpi() {
    write("rank.sh",
          "#!/bin/sh\n[ \"$OMPI_COMM_WORLD_RANK\" = 0 ] || echo $$ > second\nexec '" SIAMESE_BINARY "' \"$@\"\n");
  }
  std::string command() const {
    return "exec " + ranks(2) + " sh rank.sh " + tiny +
           "train.micro_batch=1 train.steps=1000000 train.checkpoint_every=1 train.keep_last=2 train.eval_every=0 "
           "--quiet --out x > out.txt 2> error.txt < /dev/null";
  }
  // Once something is saved, `signal` to the second rank; how mpirun ended.
  int stop_second(int signal) const {
    Background job(folder, "", command());
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

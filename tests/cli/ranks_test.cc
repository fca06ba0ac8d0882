// One run by several processes under mpirun.
#include <algorithm>
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

// Written while the steps go on, or between them: the same files.
TEST_F(UnderMpi, SavesInTheBackground) {
  const std::string command = train + "train.ema=0.9 train.checkpoint_every=1 train.keep_last=3 ";
  for (const std::string shard : {"none", "optimizer"}) {
    SCOPED_TRACE(shard);
    const std::string divided = command + "engine.shard=" + shard + " ";
    expect_ok(divided + "--out between_" + shard, ranks(3));
    expect_ok(divided + "train.save_in_background=true --out meanwhile_" + shard, ranks(3));
    expect_same_bits("between_" + shard, "meanwhile_" + shard);
    for (const char* const step : {"step4", "step5", "step6"}) {
      for (const auto& file : std::filesystem::directory_iterator(folder / ("between_" + shard) / step)) {
        const std::string name = std::string("/") + step + "/" + file.path().filename().string();
        if (name.ends_with("config.yaml")) continue;  // it has the key
        EXPECT_TRUE(read("between_" + shard + name) == read("meanwhile_" + shard + name)) << name;
      }
    }
    EXPECT_FALSE(exists("meanwhile_" + shard + "/step3"));
    // Another number of ranks goes on from what was written so.
    expect_ok("resume meanwhile_" + shard + " train.steps=7 --quiet", ranks(2));
  }
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

// With rounded operands each rank has its part of the matrices alone. Without a clip, whose norm is added in another
// order, the weights and averages are those of ranks that have them whole, to the bit.
TEST_F(UnderMpi, TheWeightsDivided) {
  const std::string command =
      train + "engine.precision=bfloat16 optim.clip=0 train.ema=0.9 eval.averaged=true train.save_in_background=true ";
  const std::string divided = command + "engine.shard=optimizer ";
  expect_ok(command + "--out whole", ranks(3));
  expect_ok(divided + "--out divided", ranks(3));
  EXPECT_EQ(lines("divided/eval.jsonl"), lines("whole/eval.jsonl"));
  for (const std::string kind : {"model", "ema"}) {
    for (const std::string rank : {"1", "2", "3"}) {
      const std::string file = "/step6/" + kind + "-0000" + rank + "-of-00003.safetensors";
      EXPECT_TRUE(read("divided" + file) == read("whole" + file)) << file;
    }
  }
  expect_ok(divided + "train.steps=4 --out cut", ranks(3));
  expect_ok("resume cut train.steps=6 --quiet", ranks(3));
  expect_same_tensors("divided", "cut");
  expect_ok(divided + "train.steps=4 --out other", ranks(2));
  expect_ok("resume other train.steps=5 --quiet", ranks(4));
  expect_ok("resume other train.steps=6 --quiet");
}

TEST_F(UnderMpi, MoreRanksThanMicroBatches) {
  const CommandResult result = run(tiny + "train.micro_batch=2 --quiet --out x", ranks(3));
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_NE(result.error.find("siamese: expected at most 2 ranks, one for each micro-batch (train.batch 4, "
                              "train.micro_batch 2), got 3: a smaller train.micro_batch makes more of them\n"),
            std::string::npos)
      << result.error;
  EXPECT_FALSE(exists("x"));
}

// Started by its bare name, as an installed program is: what MPI needs lies beside it all the same.
TEST_F(UnderMpi, FromPath) {
  const std::filesystem::path program = SIAMESE_BINARY;
  const std::string by_name = " sh -c 'exec " + program.filename().string() + " \"$@\"'";  // $0 is the whole path
  expect_ok(train + "train.steps=1 --out x",
            "PATH='" + program.parent_path().string() + "':$PATH " + ranks(2) + by_name);
}

// Held-out samples and requests are shared out; what comes out is one process's, to the bit.
TEST_F(UnderMpi, EvaluatesAsOneProcessDoes) {
  write("corpus.txt", "the cat sat on the mat and the cat sat on the hat\n");
  expect_ok("tokenizer train t.json corpus.txt --vocab 280");
  expect_ok(tiny + "data.source=random model.vocab=280 --quiet --out x");
  const auto request = [](int document, int index, const std::string& context, const std::string& continuation) {
    return R"({"request_type": "loglikelihood", "request": {"context": ")" + context + R"(", "continuation": ")" +
           continuation + R"("}, "idx": )" + std::to_string(index) + R"(, "doc_id": )" + std::to_string(document) +
           R"(, "label": 1})" + "\n";
  };
  std::string requests;
  for (int i = 0; i < 700; ++i) {
    const std::string question = i % 3 == 0 ? "the cat" : i % 3 == 1 ? "on" : "sat on the";
    requests +=
        request(i, 0, question + std::to_string(i), " cat") + request(i, 1, question + std::to_string(i), " mat");
  }
  std::filesystem::create_directories(folder / "cats");
  write("cats/requests.jsonl", requests);
  write("cats/config.json", R"({"task_name": "cats", "task_config": {"primary_metric": "acc_raw"}})");
  const std::string ask = "eval x --tasks cats --tokenizer t.json --json --out ";
  const CommandResult alone = run(ask + "alone"), three = run(ask + "three", ranks(3));
  ASSERT_EQ(three.exit_code, 0) << three.error;
  EXPECT_EQ(three.out, alone.out);
  EXPECT_EQ(read("three/cats.jsonl"), read("alone/cats.jsonl"));
  EXPECT_GE(std::ranges::count(read("alone/cats.jsonl"), '\n'), 4);
  // Half of it is known already: the rest is asked, whoever asks it.
  const std::string kept = read("alone/cats.jsonl");
  std::filesystem::create_directories(folder / "half");
  write("half/cats.jsonl", kept.substr(0, kept.find('\n', kept.size() / 2) + 1));
  const CommandResult half = run(ask + "half", ranks(2));
  EXPECT_EQ(half.out, alone.out) << half.error;
  EXPECT_EQ(read("half/cats.jsonl"), kept);
  EXPECT_EQ(run("eval x eval.held_out=7 --json", ranks(3)).out, run("eval x eval.held_out=7 --json").out);
  // In the loop.
  const std::string loop =
      train + "data.source=random model.vocab=280 eval.tasks=[cats] eval.task_limit=40 " + "eval.tokenizer=t.json ";
  expect_ok(loop + "--out loop2", ranks(2));
  const auto said = nlohmann::json::parse(run("eval loop2 --json").out);
  EXPECT_EQ(lines("loop2/eval.jsonl").back()["tasks"], said["tasks"]);
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
  const CommandResult nothing = run("eval nowhere", ranks(3));
  EXPECT_EQ(nothing.exit_code, 3);
  EXPECT_EQ(times(nothing.error, "siamese: "), 1) << nothing.error;
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

// An endless run of two ranks, whose process numbers are known.
class EndlessUnderMpi : public UnderMpi {
 protected:
  EndlessUnderMpi() {
    write("rank.sh", "#!/bin/sh\necho $$ > pid$OMPI_COMM_WORLD_RANK\nexec '" SIAMESE_BINARY "' \"$@\"\n");
  }
  std::string command(const std::string& arguments) const {
    return "exec " + ranks(2) + " sh rank.sh " + arguments + " --quiet > out.txt 2> error.txt < /dev/null";
  }
  pid_t process(int rank) const { return static_cast<pid_t>(std::stol(read("pid" + std::to_string(rank)))); }
  bool have_begun() const { return exists("pid0") && exists("pid1"); }
  // Once something is saved, `signal` to the second rank; how mpirun ended.
  int stop_second(int signal) const {
    Background job(folder, "",
                   command(tiny + "train.micro_batch=1 train.steps=1000000 train.checkpoint_every=1 train.keep_last=2 "
                                  "train.eval_every=0 --out x"));
    EXPECT_TRUE(job.wait_until([&] { return exists("x/latest") && have_begun(); })) << read("error.txt");
    kill(process(1), signal);
    return job.wait();
  }
  // A stopped process is one that hangs: it neither answers nor dies. Returns what the job said.
  std::string error_when_stopped(int rank, const std::string& overrides) const {
    expect_ok(train + "train.steps=2 --out x", ranks(2));
    Background job(folder, "", command("resume x train.steps=1000000 engine.timeout=3 " + overrides));
    const auto steps = [&] { return std::ranges::count(read("x/metrics.jsonl"), '\n'); };
    EXPECT_TRUE(job.wait_until([&] { return have_begun() && steps() > 4; })) << read("error.txt");
    kill(process(rank), SIGSTOP);
    EXPECT_NE(job.wait(), 0);
    return read("error.txt");
  }
  static std::string unanswered(int rank, const std::string& whom) {
    char host[256] = "";
    EXPECT_EQ(gethostname(host, sizeof host - 1), 0);
    return "siamese: rank " + std::to_string(rank) + " on " + host + ": " + whom +
           " did not answer for 3 s (engine.timeout)";
  }
};

TEST_F(EndlessUnderMpi, ARankThatDiesEndsTheJob) {
  EXPECT_NE(stop_second(SIGKILL), 0);
  expect_ok("eval x");
  expect_ok("resume x train.steps=100000 train.max_hours=1e-6 --quiet || test $? = 75");
}

// In a step, or in a save, which waits for its part.
TEST_F(EndlessUnderMpi, ARankThatHangsEndsTheJob) {
  for (const char* const every : {"0", "1"}) {
    SCOPED_TRACE(every);
    std::filesystem::remove_all(folder / "x");
    const std::string error =
        error_when_stopped(1, std::string("train.eval_every=0 train.keep_last=2 train.checkpoint_every=") + every);
    EXPECT_NE(error.find(unanswered(0, "the other ranks")), std::string::npos) << error;
    expect_ok("eval x");
    expect_ok("resume x train.max_hours=1e-9 --quiet || test $? = 75", ranks(2));
  }
}

// Wherever it is stopped: inside a step, or between two, where the others wait for its next order.
TEST_F(EndlessUnderMpi, RankZeroThatHangsEndsTheJob) {
  const std::string error = error_when_stopped(0, "train.eval_every=0 train.checkpoint_every=0");
  const bool said = error.find(unanswered(1, "rank 0")) != std::string::npos ||
                    error.find(unanswered(1, "the other ranks")) != std::string::npos;
  EXPECT_TRUE(said) << error;
  expect_ok("eval x");
  expect_ok("resume x train.max_hours=1e-9 --quiet || test $? = 75", ranks(2));
}

// Rank 0 draws samples for longer than the timeout, and is not taken for one that hangs.
TEST_F(EndlessUnderMpi, RankZeroThatIsBusyIsWaitedFor) {
  const std::string dit =
      "train dit-micro model.width=16 model.blocks=2 model.heads=2 model.image=16 train.batch=4 train.micro_batch=1 "
      "train.steps=2 eval.held_out=2 engine.threads=1 engine.timeout=3 --quiet --out y ";
  expect_ok(dit + "eval.samples=3 eval.sampler_steps=1000 eval.sampler=ddpm", ranks(2));
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

// What a run does when it is asked to stop, and when a file goes away under it.
#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class Signals : public CommandTest {
 protected:
  const std::string endless = tiny + "train.steps=1000000 train.checkpoint_every=0 train.eval_every=0 ";

  nlohmann::json run_file(const std::string& out) const { return nlohmann::json::parse(read(out + "/run.json")); }

  // Waits until a run is deep in an evaluation without end. Between the line of the first step and the evaluation a
  // request to stop is still answered, so the line alone does not tell: processor time does.
  void wait_for_evaluation(Background& process) const {
    ASSERT_TRUE(process.wait_until([&] { return has_lines(folder / "run/metrics.jsonl", 1); })) << read("error.txt");
    const double first = process.processor_seconds();
    ASSERT_TRUE(process.wait_until([&] { return process.processor_seconds() > first + 1; })) << read("error.txt");
  }

  // Waits until `lines` steps were written, sends the signals at once, and returns how the process ended.
  int stop(Background& process, const std::string& out, int64_t lines, const std::vector<int>& signals) const {
    EXPECT_TRUE(process.wait_until([&] { return has_lines(folder / out / "metrics.jsonl", lines); }))
        << read("error.txt");
    for (const int signal : signals) process.send(signal);
    return process.wait();
  }
};

TEST_F(Signals, AreAnsweredBySavingAndSayingHowToGoOn) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    const int code = 128 + signal;
    const std::string out = "run" + std::to_string(signal);
    Background process(folder, endless + "--out " + out);
    EXPECT_EQ(stop(process, out, 3, {signal}), code) << read("error.txt");
    EXPECT_NE(read("error.txt").find("stopped and saved; go on with: siamese resume " + out), std::string::npos)
        << read("error.txt");
    EXPECT_EQ(run_file(out)["status"], "stopped");
    const auto stopped_at = run_file(out)["step"].get<int64_t>();
    EXPECT_EQ(read(out + "/latest"), "step" + std::to_string(stopped_at) + "\n");
    Background again(folder, "resume " + out);
    EXPECT_EQ(stop(again, out, stopped_at + 3, {signal}), code) << read("error.txt");
    EXPECT_GE(run_file(out)["step"].get<int64_t>(), stopped_at + 3);
  }
}

// `timeout`, mpirun and batch systems signal a process and then its group: two signals, one request.
TEST_F(Signals, TwiceAtOnceIsOneRequest) {
  Background process(folder, endless + "--out run");
  EXPECT_EQ(stop(process, "run", 3, {SIGTERM, SIGTERM, SIGTERM}), 143) << read("error.txt");
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_TRUE(exists("run/latest"));
}

// Slurm's warning, and minutes later its SIGTERM while the last step is still saved: that one is the first request to
// stop. And a limit on processor time says so every second.
TEST_F(Signals, AWarningDoesNotCountAsARequest) {
  Background process(folder, endless + "eval.batches=1000000 train.eval_every=1 --out run");
  ASSERT_NO_FATAL_FAILURE(wait_for_evaluation(process));
  process.send(SIGUSR1);
  const auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  ASSERT_TRUE(process.wait_until([&] {
    for (const int signal : {SIGUSR1, SIGUSR2, SIGXCPU}) process.send(signal);
    return std::chrono::steady_clock::now() > later;
  }));
  const auto first = std::chrono::steady_clock::now();
  ASSERT_TRUE(process.wait_until([&] {
    process.send(SIGTERM);
    return process.ended();
  }));
  EXPECT_GT(std::chrono::steady_clock::now() - first, std::chrono::seconds(1));
  EXPECT_EQ(process.wait(), 1000 + SIGTERM);
}

// In an evaluation that takes hours nobody looks whether a stop was asked for.
TEST_F(Signals, AskingAgainLaterKills) {
  Background process(folder, endless + "eval.batches=1000000 train.eval_every=1 --out run");
  ASSERT_NO_FATAL_FAILURE(wait_for_evaluation(process));
  const auto first = std::chrono::steady_clock::now();
  process.send(SIGTERM);
  ASSERT_TRUE(process.wait_until([&] {
    process.send(SIGTERM);
    return process.ended();
  }));
  EXPECT_GT(std::chrono::steady_clock::now() - first, std::chrono::seconds(1));
  EXPECT_EQ(process.wait(), 1000 + SIGTERM);
}

TEST_F(Signals, AFileThatIsCutShortIsExplained) {
  write("tokens.bin", std::string(1 << 20, '\0'));
  Background process(folder, endless + "data.source=tokens data.train=[tokens.bin] model.vocab=64 --out run");
  ASSERT_TRUE(process.wait_until([&] { return has_lines(folder / "run/metrics.jsonl", 3); })) << read("error.txt");
  std::filesystem::resize_file(folder / "tokens.bin", 0);
  EXPECT_EQ(process.wait(), 3);
  EXPECT_NE(read("error.txt").find("siamese: a file that is being read was cut short (SIGBUS)\n"), std::string::npos)
      << read("error.txt");
}

}  // namespace
}  // namespace siamese::cli

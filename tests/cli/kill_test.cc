// A run that is killed again and again ends with the bits of one that never was.
#include <random>

#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/io/aside.h"

namespace siamese::cli {
namespace {

class Kills : public CommandTest {
 protected:
  // Everything that a checkpoint can hold: averaged weights, the window of the spike guard, old ones removed.
  const std::string longer = tiny +
                             "train.steps=600 train.checkpoint_every=5 train.eval_every=50 train.record_every=25 "
                             "train.ema=0.9 train.skip_outliers=2 train.skip_window=16 train.keep_last=2 "
                             "train.keep_every=30 ";

  // Without what the clock decides.
  std::vector<nlohmann::json> lines(const std::string& name) const {
    std::vector<nlohmann::json> list;
    std::istringstream stream(read(name));
    for (std::string line; std::getline(stream, line);) {
      list.push_back(nlohmann::json::parse(line));
      for (const char* const key : {"step_ms", "tokens_per_s", "samples_per_s", "checksum"}) list.back().erase(key);
    }
    return list;
  }

  std::set<std::string> names(const std::string& run) const {
    std::set<std::string> found;
    std::error_code error;  // of a folder that is not there yet, or that changes meanwhile
    std::filesystem::directory_iterator entry(folder / run, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      found.insert(entry->path().filename().string());
    }
    return found;
  }

  // `before`: what earlier kills left.
  bool is_writing(const std::string& run, const std::set<std::string>& before) const {
    const std::set<std::string> all = names(run);
    return std::any_of(all.begin(), all.end(), [&](const auto& name) {
      return name.starts_with("step") && io::is_aside_name(name) && !before.contains(name);
    });
  }

  int64_t saved_step(const std::string& run) const {
    const std::string latest = read(run + "/latest");
    return latest.size() > 4 ? std::stoll(latest.substr(4)) : 0;
  }
};

TEST_F(Kills, TwentyOfThemChangeNoBit) {
  ASSERT_EQ(run(longer + "--quiet --out whole").exit_code, 0);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pause = [&](unsigned longest) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
  };
  int while_writing = 0;
  for (int kills = 0; kills < 20; ++kills) {
    SCOPED_TRACE("kill " + std::to_string(kills));
    const std::set<std::string> before = names("killed");
    const int64_t wanted = saved_step("killed") + 1 + static_cast<int64_t>(random() % 9);
    Background process(folder,
                       exists("killed/config.yaml") ? "resume killed --quiet" : longer + "--quiet --out killed");
    if (kills % 4 == 3) {
      pause(400'000);  // while it starts, or soon after
    } else {
      ASSERT_TRUE(process.wait_until([&] { return saved_step("killed") >= wanted; })) << read("error.txt");
      pause(3'000);
    }
    if (kills % 2 == 0) process.wait_until([&] { return is_writing("killed", before); });
    process.send(SIGKILL);
    ASSERT_EQ(process.wait(), 1000 + SIGKILL) << read("error.txt");
    while_writing += is_writing("killed", before) ? 1 : 0;
  }
  EXPECT_GE(while_writing, 3);  // a kill can come just after the write that it was meant for
  ASSERT_EQ(run("resume killed --quiet").exit_code, 0) << read("error.txt");
  for (const char* const file : {"model", "optim", "ema"}) {
    const std::string path = std::string("/step600/") + file + ".safetensors";
    EXPECT_TRUE(read("killed" + path) == read("whole" + path)) << path;
  }
  EXPECT_EQ(read("killed/step600/trainer.json"), read("whole/step600/trainer.json"));
  EXPECT_EQ(names("killed"), names("whole"));
  const auto metrics = lines("killed/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 600U);
  EXPECT_EQ(metrics, lines("whole/metrics.jsonl"));
  EXPECT_EQ(lines("killed/eval.jsonl"), lines("whole/eval.jsonl"));
  const bool skipped = std::any_of(metrics.begin(), metrics.end(), [](const auto& line) { return line["skipped"]; });
  EXPECT_TRUE(skipped) << "the spike guard had nothing to do";
}

}  // namespace
}  // namespace siamese::cli

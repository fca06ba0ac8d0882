// A run that is killed again and again ends with the bits of one that never was.
#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include <random>

namespace siamese::cli {
namespace {

class Kills : public CommandTest {
 protected:
  // Everything that a checkpoint can hold: averaged weights, the window of the spike guard, old ones removed.
  const std::string longer = tiny +
                             "train.steps=400 train.checkpoint_every=3 train.eval_every=50 train.record_every=25 "
                             "train.ema=0.9 train.skip_outliers=2 train.skip_window=16 train.keep_last=2 "
                             "train.keep_every=30 ";

  // Without what the clock decides.
  std::vector<nlohmann::json> lines(const std::string& name) const {
    std::vector<nlohmann::json> list;
    std::istringstream stream(read(name));
    for (std::string line; std::getline(stream, line);) {
      list.push_back(nlohmann::json::parse(line));
      for (const char* const key : {"step_ms", "tokens_per_s", "samples_per_s"}) list.back().erase(key);
    }
    return list;
  }

  std::set<std::string> names(const std::string& run) const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / run)) {
      found.insert(entry.path().filename().string());
    }
    return found;
  }

  bool writes_a_checkpoint(const std::string& run) const {
    std::error_code error;
    std::filesystem::directory_iterator entry(folder / run, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.starts_with("step") && name.find(".tmp-") != std::string::npos) return true;
    }
    return false;
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
  int while_writing = 0;
  for (int kills = 0; kills < 20; ++kills) {
    // Every process comes so far that the run gets on, and dies before its end.
    const int64_t wanted = std::min<int64_t>(saved_step("killed") + 1 + static_cast<int64_t>(random() % 20), 380);
    const bool in_a_write = kills % 2 == 0;
    Background process(folder, exists("killed/config.yaml") ? "resume killed --quiet" : longer + "--quiet --out killed");
    ASSERT_TRUE(process.wait_until([&] { return has_lines(folder / "killed/metrics.jsonl", wanted); }))
        << read("error.txt");
    if (in_a_write) {
      ASSERT_TRUE(process.wait_until([&] { return writes_a_checkpoint("killed"); })) << read("error.txt");
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    }
    process.send(SIGKILL);
    ASSERT_EQ(process.wait(), 1000 + SIGKILL) << "ended before kill " << kills;
    while_writing += writes_a_checkpoint("killed") ? 1 : 0;
  }
  EXPECT_GE(while_writing, 3);  // a kill can come just after the write it was meant for
  ASSERT_EQ(run("resume killed --quiet").exit_code, 0) << read("error.txt");
  for (const char* const file : {"model", "optim", "ema"}) {
    const std::string path = std::string("/step400/") + file + ".safetensors";
    EXPECT_TRUE(read("killed" + path) == read("whole" + path)) << path;
  }
  EXPECT_EQ(read("killed/step400/trainer.json"), read("whole/step400/trainer.json"));
  EXPECT_EQ(names("killed"), names("whole"));
  const auto metrics = lines("killed/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 400U);
  EXPECT_EQ(metrics, lines("whole/metrics.jsonl"));
  EXPECT_EQ(lines("killed/eval.jsonl"), lines("whole/eval.jsonl"));
  const bool skipped = std::any_of(metrics.begin(), metrics.end(), [](const auto& line) { return line["skipped"]; });
  EXPECT_TRUE(skipped) << "the spike guard had nothing to do";
}

}  // namespace
}  // namespace siamese::cli

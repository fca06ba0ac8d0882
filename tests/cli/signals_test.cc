#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

using Signals = CommandTest;

TEST_F(Signals, InterruptAndTerminateSaveAndSayHowToGoOn) {
  const std::string endless = tiny + "train.steps=1000000 train.checkpoint_every=0 train.eval_every=0 ";
  for (const auto& [name, code] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
    const std::string out = std::string("run") + name;
    const CommandResult result =
        run(endless + "--out " + out, std::string("timeout --preserve-status -s ") + name + " 3");
    EXPECT_EQ(result.exit_code, code) << result.error;
    EXPECT_NE(result.error.find("siamese resume " + out), std::string::npos) << result.error;
    EXPECT_EQ(nlohmann::json::parse(read(out + "/run.json"))["status"], "stopped");
    EXPECT_TRUE(exists(out + "/latest"));
    // Saved at a step, and going on from there: stop again a second later.
    const auto stopped_at = nlohmann::json::parse(read(out + "/run.json"))["step"].get<int64_t>();
    EXPECT_EQ(run("resume " + out, "timeout --preserve-status -s TERM 3").exit_code, 143);
    EXPECT_GT(nlohmann::json::parse(read(out + "/run.json"))["step"].get<int64_t>(), stopped_at);
  }
}

TEST_F(Signals, AKilledRunResumesToTheSameBits) {
  const std::string longer = tiny + "train.steps=400 train.checkpoint_every=7 train.eval_every=0 train.record_every=0 ";
  ASSERT_EQ(run(longer + "--out whole").exit_code, 0);
  run(longer + "--out killed", "timeout -s KILL 1");
  CommandResult result;
  for (int tries = 0; tries < 10 && !exists("killed/step400"); ++tries) {
    const std::string limit = tries < 2 ? "timeout -s KILL 1" : "";
    result = run(exists("killed/config.yaml") ? "resume killed" : longer + "--out killed", limit);
  }
  ASSERT_TRUE(exists("killed/step400")) << result.error;
  EXPECT_EQ(read("killed/step400/model.safetensors"), read("whole/step400/model.safetensors"));
  EXPECT_EQ(read("killed/step400/optim.safetensors"), read("whole/step400/optim.safetensors"));
  const auto lines = [this](const std::string& name) {
    const std::string text = read(name);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines("killed/metrics.jsonl"), 400);
}

}  // namespace
}  // namespace siamese::cli

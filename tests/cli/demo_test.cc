#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class Demo : public CommandTest {
 protected:
  // What `make demo` calls, with overrides.
  CommandResult demo(const std::string& overrides) const {
    return run("demo " + overrides, "'" SIAMESE_CONFIG_FOLDER "/../tools/demo.sh'");
  }
  // Whether somebody listens at the address that the live page had.
  bool is_live(const std::string& out) const {
    const size_t at = out.find("http://127.0.0.1:");
    if (at == std::string::npos) return false;
    const std::string port = std::to_string(std::stoi(out.substr(at + 17)));
    return std::system(("bash -c 'exec 3<> /dev/tcp/127.0.0.1/" + port + "' 2> /dev/null").c_str()) == 0;
  }
};

// The demo's own config, all its variants, a few steps each.
TEST_F(Demo, SmokeRun) {
  const CommandResult result = demo("train.steps=3 train.batch=2 train.eval_every=0 eval.batches=1 eval.problems=1");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("[1/12] pre-lr1e-2-seed1\n"), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find("\\x"), std::string::npos) << result.error;  // no control character was to be shown
  const auto sweep = nlohmann::json::parse(read("demo/sweep.json"));
  std::set<std::string> variants;
  for (const auto& planned : sweep["runs"]) {
    variants.insert(planned["variant"].get<std::string>());
    const auto status =
        nlohmann::json::parse(read("demo/" + planned["dir"].get<std::string>() + "/run.json"))["status"];
    EXPECT_EQ(status, "finished") << planned["dir"];
  }
  EXPECT_EQ(variants, (std::set<std::string>{"pre", "pre, attention_norm=qkv", "post", "hybrid", "siamese",
                                             "siamese(x=hybrid)"}));
  for (const auto& variant : variants) EXPECT_NE(result.out.find(variant), std::string::npos) << result.out;
  EXPECT_TRUE(exists("demo/report.html"));
  EXPECT_EQ(result.out.find("Live, while they train: open http://127.0.0.1:"), 0u) << result.out;
  EXPECT_FALSE(is_live(result.out));
}

TEST_F(Demo, TheLivePageEndsWithASweepThatFails) {
  const CommandResult result = demo("optim.lrr=1");
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_NE(result.out.find("http://127.0.0.1:"), std::string::npos) << result.out;
  EXPECT_FALSE(is_live(result.out));
}

}  // namespace
}  // namespace siamese::cli

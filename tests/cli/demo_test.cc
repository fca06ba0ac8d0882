#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

using Demo = CommandTest;

// The demo's own config, all its variants, a few steps each.
TEST_F(Demo, SmokeRun) {
  const CommandResult result =
      run("sweep '" SIAMESE_CONFIG_FOLDER
          "/demo.yaml' train.steps=3 train.batch=2 train.eval_every=0 eval.batches=1 eval.problems=1 --out demo");
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
}

}  // namespace
}  // namespace siamese::cli

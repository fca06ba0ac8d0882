// `siamese plan`: its numbers come from siamese/plan and train/needs, which have tests of their own; here that flags
// reach them and that both forms of the output say the same.
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class Plan : public CommandTest {
 protected:
  nlohmann::json json(const std::string& arguments) const {
    const CommandResult result = run("plan " + arguments + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return nlohmann::json::parse(result.out);
  }
};

TEST_F(Plan, OfARecipeOnManyDevices) {
  const auto found = json(
      "siamese-1.3b --devices 64 --nodes 8 --device-memory 40GB --device-flops 0.1P --utilization 0.5 --link 10GB/s "
      "--node-link 200GB/s --memory-rate 1TB/s --price 2 --micro-batch 2 --overlap 0 --latency-us 0 --mtbf-hours 1000 "
      "--disk 1GB/s --restart-minutes 5 --usable 0.8");
  EXPECT_EQ(found["kind"], "plan");
  EXPECT_EQ(found["schema"], 1);
  EXPECT_EQ(found["model"]["parameters"], 1279438848);
  EXPECT_EQ(found["model"]["parameters_by_part"]["embedding"], 100352 * 2048);
  EXPECT_EQ(found["model"]["parameters_by_part"]["head"], 0);
  ASSERT_EQ(found["plans"].size(), 6u);
  const auto& plan = found["plans"][2];
  EXPECT_EQ(plan["sharding"], "optimizer");
  EXPECT_FALSE(plan["recompute"]);
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["largest_micro_batch"], 4) << "of 32 GB, 10.4 GB are state and a sample takes 5 GB";
  const double weights = 4 * 1279438848.0;
  EXPECT_EQ(plan["bytes"]["weights"], weights);
  EXPECT_EQ(plan["bytes"]["moments"], 2 * weights / 64);
  EXPECT_NEAR(plan["sent_bytes"].get<double>(), 2 * weights * 63 / 64, 1);
  const double exchange = 7 / 8.0 * weights / 200e9 + 7 / 8.0 * weights / 8 / 10e9;
  EXPECT_NEAR(plan["exposed_seconds"].get<double>(), 2 * exchange, 1e-9);
  const double flops = found["model"]["step_flops"].get<double>() / 64;
  EXPECT_NEAR(plan["compute_seconds"].get<double>(), flops / 5e13, 1e-6);
  EXPECT_NEAR(plan["update_seconds"].get<double>(), 9 * weights / 1e12 / 64, 1e-9);
  EXPECT_EQ(found["checkpoint"]["write_seconds"], 3 * weights / 1e9);
  EXPECT_EQ(found["checkpoint"]["mean_seconds_between_failures"], 1000 * 3600 / 64.0);
  EXPECT_NEAR(plan["price"].get<double>(), plan["days"].get<double>() * 24 * 64 * 2, 1e-6);
}

TEST_F(Plan, TextOfEveryFamily) {
  for (const std::string recipe : {"arithmetic-small", "moe-micro", "vit-micro", "dit-micro model.residual=hc"}) {
    const CommandResult result = run("plan " + recipe + " --devices 4 --price 1 --micro-batch 0");
    EXPECT_EQ(result.exit_code, 0) << result.error;
    for (const char* const word : {"parameters", "FLOPs", "checkpoint", "none", "optimizer", "fsdp", "price"}) {
      EXPECT_NE(result.out.find(word), std::string::npos) << recipe << "\n" << result.out;
    }
    EXPECT_EQ(result.out.find("KV cache") == std::string::npos, recipe[0] == 'v' || recipe[0] == 'd') << result.out;
  }
  EXPECT_NE(run("plan moe-micro").out.find("if it met all experts"), std::string::npos);
}

TEST_F(Plan, SecondStreamsTakeMemory) {
  const auto activations = [&](const std::string& scheme) {
    return json("bench/s model.residual=" + scheme)["model"]["activations_kept"]["bytes_each_sample"].get<double>();
  };
  const double one = activations("pre"), two = activations("siamese"), four = activations("hc");
  EXPECT_LT(one, two);
  EXPECT_LT(two, four);
}

TEST_F(Plan, Refusals) {
  expect_refusal("plan bench/s --devices 9", 2, "devices: expected at most 8");
  expect_refusal("plan bench/s --devices 6 --nodes 4", 2, "nodes: expected a divisor of the devices (6), got 4");
  expect_refusal("plan bench/s --link 25GB", 2, "--link: expected a rate such as 25GB/s or 800MB/s, got '25GB'");
  expect_refusal("plan bench/s --device-flops fast", 2, "--device-flops: expected operations a second");
  expect_refusal("plan bench/s --devices 0", 2, "--devices");
  expect_refusal("plan bench/s --device-memory 80", 2, "--device-memory: expected a size such as 80GB, got '80'");
  expect_refusal("plan nothing", 2, "nothing");
}

}  // namespace
}  // namespace siamese::cli

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

using Bench = CommandTest;

const std::string kTinyShape =
    "bench/s model.width=16 model.blocks=2 model.heads=2 model.ffn_width=24 model.context=16 model.vocab=32 "
    "train.batch=2 engine.threads=1 ";

TEST_F(Bench, StepSaysTimeMemoryAndParts) {
  const CommandResult result = run("bench step " + kTinyShape + "--steps 3 --warmup 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["scheme"], "siamese");
  EXPECT_EQ(json["tokens"], 32);
  EXPECT_EQ(json["steps"], 3);
  for (const char* const field : {"median_ms", "p25_ms", "p75_ms", "tokens_per_s", "gflops", "fma_gflops", "peak_share",
                                  "idle_rss_mb", "peak_rss_mb", "state_mb"}) {
    ASSERT_TRUE(json.contains(field)) << field;
    EXPECT_GT(json[field].get<double>(), 0) << field;
  }
  EXPECT_GE(json["peak_rss_mb"], json["idle_rss_mb"]);
  EXPECT_DOUBLE_EQ(json["state_mb"].get<double>(), json["parameters"].get<double>() * 16 / (1 << 20));
  EXPECT_NEAR(json["tokens_per_s"].get<double>(), 32e3 / json["median_ms"].get<double>(), 1);
  for (const char* const part :
       {"matmul", "attention", "junction", "activation", "loss", "embedding", "optimizer", "other"}) {
    EXPECT_GT(json["part_ms"].value(part, 0.0), 0) << part << " in " << json["part_ms"];
  }
  const CommandResult text = run("bench step " + kTinyShape + "model.residual=pre --steps 1 --warmup 0 --part-steps 0");
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find("tokens"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("matmul"), std::string::npos) << text.out;
}

// What --version calls the fast path of bfloat16, and its peak where there is one.
TEST_F(Bench, MachineSaysItsPeaks) {
  const CommandResult result = run("bench machine --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["bench"], "machine");
  const std::string fast = json["bfloat16"];
  EXPECT_NE(run("--version").out.find(", bfloat16 " + fast + ", "), std::string::npos) << fast;
  ASSERT_EQ(json["threads"].size(), json["cores"] == 1 ? 1U : 2U);
  EXPECT_EQ(json["threads"].front()["threads"], 1);
  EXPECT_EQ(json["threads"].back()["threads"], json["cores"]);
  for (const auto& threads : json["threads"]) {
    EXPECT_GT(threads["fma_gflops"].get<double>(), 0);
    EXPECT_GT(threads["triad_gb_per_s"].get<double>(), 0);
    EXPECT_EQ(threads.contains("bfloat16_gflops"), fast != "none");
    EXPECT_GT(threads.value("bfloat16_gflops", 1.0), 0);
  }
}

// The data of a recipe need not be there: tokens are random.
TEST_F(Bench, StepNeedsNoData) {
  const CommandResult result =
      run("bench step text-small 'data.train=[gone.txt]' model.width=16 model.blocks=1 model.context=8 train.batch=1 "
          "engine.threads=1 --steps 1 --warmup 0 --json");
  EXPECT_EQ(result.exit_code, 0) << result.error;
}

TEST_F(Bench, StepsOfTwoConfigsTakeTurns) {
  const CommandResult result = run("bench step " + kTinyShape +
                                   "model.residual=siamese --against model.residual=pre --against "
                                   "model.attention_norm=qkv --steps 2 --warmup 0 --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["bench"], "step_against");
  EXPECT_EQ(json["against"], nlohmann::json({"model.residual=pre", "model.attention_norm=qkv"}));
  EXPECT_EQ(json["steps"], 2);
  EXPECT_GT(json["ratio_low"].get<double>(), 0);
  EXPECT_LE(json["ratio_low"].get<double>(), json["ratio"].get<double>());
  EXPECT_LE(json["ratio"].get<double>(), json["ratio_high"].get<double>());
  expect_refusal("bench step " + kTinyShape + "--against model.residual=nonsense", 2, "nonsense");
}

TEST_F(Bench, GenerateComparesTwoSchemes) {
  const std::string command = "bench generate " + kTinyShape + "--against pre --tokens 4 --rounds 2 --sequences 3 ";
  const CommandResult result = run(command + "--json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["sequences"], 3);
  EXPECT_NEAR(json["bound_ms"].get<double>(), json["weights_mb"].get<double>() / json["read_gb_per_s"].get<double>(),
              1e-9);
  EXPECT_NEAR(json["of_bound"].get<double>(), json["median_ms"].get<double>() / json["bound_ms"].get<double>(), 1e-6);
  EXPECT_NE(run(command).out.find("of weights at"), std::string::npos);
  EXPECT_EQ(json["scheme"], "siamese");
  EXPECT_EQ(json["against"], "pre");
  EXPECT_EQ(json["tokens"], 4);
  EXPECT_GT(json["median_ms"].get<double>(), 0);
  EXPECT_GT(json["ratio"].get<double>(), 0);
  EXPECT_LE(json["ratio_low"].get<double>(), json["ratio_high"].get<double>());
}

TEST_F(Bench, ExpertsAreMeasuredBesideADenseBranch) {
  const std::string command = "bench experts --rows 10 --width 16 --hidden 8 --experts 3 --per-token 2 --rounds 2 ";
  const CommandResult result = run(command + "--threads 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["experts"], 3);
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_EQ(json["threads"], 1);
  for (const char* const field : {"median_ms", "dense_ms", "dense_gflops", "ratio", "fma_gflops", "peak_share"}) {
    EXPECT_GT(json.value(field, 0.0), 0) << field;
  }
  // 3 products of 10 * 2 rows, 16 by 8, forward and twice backward, two operations each.
  EXPECT_NEAR(json["gflops"].get<double>() * json["median_ms"].get<double>() * 1e6, 3 * 3 * 2 * 20 * 16 * 8, 1);
  const CommandResult text = run(command);
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find("of the dense speed"), std::string::npos) << text.out;
  const CommandResult half = run(command + "--precision bfloat16 --json");
  EXPECT_EQ(half.exit_code, 0) << half.error;
  EXPECT_EQ(nlohmann::json::parse(half.out)["precision"], "bfloat16");
  expect_refusal("bench experts --experts 2 --per-token 3", 2, "--per-token");
}

TEST_F(Bench, KernelsAreMeasuredBesideStreaming) {
  const CommandResult result = run("bench kernels --in-cache --threads 1 --seconds 0 --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["kernels"].size(), 36U);
  for (const auto& kernel : json["kernels"]) EXPECT_GT(kernel["share"].get<double>(), 0) << kernel;
  expect_refusal("bench kernels --only nonsense", 2, "--only");
}

// Of a pure power of two the exponents of FLOPs are known; times are not asserted.
TEST_F(Bench, GrowthFitsExponents) {
  const std::string command = "bench growth " + kTinyShape + "--steps 1 --warmup 0 ";
  const CommandResult result = run(command + "--only depth --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["bench"], "growth");
  EXPECT_EQ(json["config"], "bench/s");
  ASSERT_EQ(json["points"].size(), 8U);
  for (size_t i = 0; i < 8; ++i) {
    const auto& point = json["points"][i];
    EXPECT_EQ(point["axis"], "depth");
    EXPECT_EQ(point["value"], 1 << (i % 4));  // 2 blocks by a half, one, two and four
    EXPECT_EQ(point["recompute"], i >= 4);
    EXPECT_EQ(point["tokens"], 32);
    for (const char* const field : {"median_ms", "gflop", "gflops", "activations_mb", "peak_rss_mb", "state_mb"}) {
      EXPECT_GT(point.value(field, 0.0), 0) << field;
    }
    // A process of its own: no point has the parameters of another.
    EXPECT_DOUBLE_EQ(point["state_mb"].get<double>(), point["parameters"].get<double>() * 16 / (1 << 20));
  }
  EXPECT_LT(json["points"][4]["parameters"], json["points"][3]["parameters"]);
  ASSERT_EQ(json["fits"].size(), 2U);
  // Blocks and a head: the FLOPs of one, two, four and eight blocks are a b + c with c > 0, so less than linear.
  const auto gflop = [&](size_t point) { return json["points"][point]["gflop"].get<double>(); };
  EXPECT_NEAR(gflop(3) - gflop(2), 2 * (gflop(2) - gflop(1)), 1e-9);
  EXPECT_GT(json["fits"][0]["flops"].get<double>(), 0.8);
  EXPECT_LT(json["fits"][0]["flops"].get<double>(), 1);
  EXPECT_EQ(json["fits"][0]["points"], 4);
  EXPECT_TRUE(json["fits"][0]["time"].is_number());
}

TEST_F(Bench, GrowthKeepsWhatItDoesNotChange) {
  // 3 images in patches 2 x 2; one head cannot be halved, 3 samples neither halved nor quartered.
  const std::string shape =
      "bench/v model.width=8 model.heads=1 model.blocks=1 model.image=8 model.patch=4 model.classes=3 train.batch=3 "
      "train.micro_batch=1 engine.threads=1 --steps 1 --warmup 0 ";
  const CommandResult result = run("bench growth " + shape + "--only context --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["points"].size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const int grid = 1 << i;
    EXPECT_EQ(json["points"][i]["value"], grid * grid + 1);
    EXPECT_EQ(json["points"][i]["tokens"], 3 * (grid * grid + 1));
  }
  const CommandResult text = run("bench growth " + shape + "--only batch");
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find("grows as a power of"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("batch                3 "), std::string::npos) << text.out;
}

TEST_F(Bench, Mistakes) {
  expect_refusal("bench growth bench/xl", 2, "bench/xl");
  expect_refusal("bench growth bench/s --only height", 2, "--only");
  expect_refusal("bench", 2, "subcommand");
  expect_refusal("bench step bench/xl", 2, "bench/xl");
  expect_refusal("bench step bench/s --steps 0", 2, "--steps");
  expect_refusal("bench step bench/s optim.lrr=1", 2, "did you mean 'optim.lr'?");
  expect_refusal("bench generate bench/s --against nope", 2, "unknown residual scheme 'nope'");
}

}  // namespace
}  // namespace siamese::cli

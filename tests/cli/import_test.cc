// `convert` for what people have: the layout told by config.json, llama2.c's file, other types.
#include <cstring>

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

using Json = nlohmann::json;

class Import : public CommandTest {
 protected:
  CommandResult ok(const std::string& arguments) const {
    CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
    return result;
  }
  void make_run(const std::string& more = "") const {
    ok(tiny + "model.residual=pre train.steps=2 train.eval_every=0 train.checkpoint_every=0 " + more + " --out run");
  }
  std::string said(const std::string& folder_name) const {
    return ok("generate " + folder_name + " --ids --prompt '1 2 3' --max-tokens 6").out;
  }
};

TEST_F(Import, TheLayoutIsTold) {
  make_run("model.qkv_bias=true model.norm_eps=1e-6");
  ok("convert run --to hf-qwen2 -o there");
  EXPECT_EQ(Json::parse(read("there/config.json")).at("model_type"), "qwen2");
  std::filesystem::remove(folder / "there" / "config.yaml");
  const Json back = Json::parse(ok("convert there --to siamese -o back --json").out);
  EXPECT_EQ(back.at("from"), "hf-qwen2");
  EXPECT_EQ(said("back"), said("run"));
  expect_refusal("convert there --from hf-llama --to siamese -o more", 2, "--from");
}

TEST_F(Import, OtherTypes) {
  make_run();
  const Json report = Json::parse(ok("convert run --to hf-llama -o half --dtype bfloat16 --json").out);
  ASSERT_EQ(report.at("dtypes").size(), 1U);
  EXPECT_TRUE(report.at("dtypes").contains("BF16"));
  EXPECT_EQ(Json::parse(read("half/config.json")).at("torch_dtype"), "bfloat16");
  // Wider again, they are the rounded numbers; narrower once more, the same bits.
  ok("convert half --to siamese -o wide --dtype float32");
  ok("convert wide --to hf-llama -o again --dtype bfloat16");
  EXPECT_EQ(read("half/model.safetensors"), read("again/model.safetensors"));
  expect_refusal("convert run --to hf-llama -o x --dtype int8", 2, "--dtype");
}

TEST_F(Import, ScaledFrequenciesGoAlong) {
  make_run("'model.rope_scaling=llama3(factor=4, context=16)'");
  ok("convert run --to hf-llama -o there");
  const Json rope = Json::parse(read("there/config.json")).at("rope_parameters");
  EXPECT_EQ(rope.at("rope_type"), "llama3");
  EXPECT_EQ(rope.at("factor"), 4);
  EXPECT_EQ(rope.at("original_max_position_embeddings"), 16);
  std::filesystem::remove(folder / "there" / "config.yaml");
  ok("convert there --to siamese -o back");
  EXPECT_NE(read("back/config.yaml").find("rope_scaling: llama3(factor=4, context=16)"), std::string::npos);
  EXPECT_EQ(said("back"), said("run"));
  expect_refusal("convert run --to hf -o x", 2, "model.rope_scaling: expected none for layout hf");
}

TEST_F(Import, AWindowGoesThereAndBack) {
  make_run("model.context=24 model.window=5");
  ok("convert run --to hf-mistral -o there");
  EXPECT_EQ(Json::parse(read("there/config.json")).at("sliding_window"), 5);
  std::filesystem::remove(folder / "there" / "config.yaml");
  ok("convert there --to siamese -o back");
  EXPECT_NE(read("back/config.yaml").find("window: 5"), std::string::npos);
  EXPECT_EQ(said("back"), said("run"));
  for (const char* const layout : {"hf-llama", "hf", "meta-llama"}) {
    expect_refusal(std::string("convert run --to ") + layout + " -o x", 2, "model.window: expected 0, or at least");
  }
}

TEST_F(Import, BlocksOfOlmo3AndDepthAttentionGoThereAndBack) {
  make_run(
      "'model.residual=siamese(x=hybrid)' model.attention_norm=qk_full model.blocks=4 model.context=24 model.window=5 "
      "model.window_pattern=SSF model.depth_attention_stride=2 model.depth_attention_recent=1 "
      "'model.rope_scaling=yarn(factor=4, context=16)' model.rope_scaling_layers=full");
  ok("convert run --to archspace-olmo3 -o there");
  const Json config = Json::parse(read("there/config.json"));
  EXPECT_EQ(config.at("model_type"), "olmo3_siamese_depth");
  EXPECT_EQ(config.at("sliding_window"), 5);
  const std::string sliding = "sliding_attention", full = "full_attention";
  EXPECT_EQ(config.at("layer_types"), Json({sliding, sliding, full, sliding}));
  EXPECT_EQ(config.at("rope_parameters").at(full).at("rope_type"), "yarn");
  EXPECT_EQ(config.at("rope_parameters").at(sliding).at("rope_type"), "default");
  EXPECT_EQ(config.at("depth_attention_stride"), 2);
  EXPECT_EQ(config.at("depth_attention_recent_window"), 1);
  std::filesystem::remove(folder / "there" / "config.yaml");
  const Json back = Json::parse(ok("convert there --to siamese -o back --json").out);
  EXPECT_EQ(back.at("from"), "archspace-olmo3");
  for (const char* const line : {"window: 5", "window_pattern: SSF", "rope_scaling_layers: full",
                                 "depth_attention_stride: 2", "depth_attention_recent: 1", "attention_norm: qk_full"}) {
    EXPECT_NE(read("back/config.yaml").find(line), std::string::npos) << line;
  }
  EXPECT_EQ(said("back"), said("run"));
  expect_refusal("convert run --to hf-siamese -o x", 2, "model.window: expected 0, or at least");
}

TEST_F(Import, AWindowOfSomeBlocksLimitsTheContext) {
  make_run("model.context=24 model.qkv_bias=true model.norm_eps=1e-6");
  ok("convert run --to hf-qwen2 -o there");
  Json config = Json::parse(read("there/config.json"));
  EXPECT_TRUE(config.at("sliding_window").is_null());
  config["use_sliding_window"] = true;
  config["sliding_window"] = 16;
  write("there/config.json", config.dump());
  std::filesystem::remove(folder / "there" / "config.yaml");
  const CommandResult shorter = ok("convert there --to siamese -o back");
  EXPECT_NE(shorter.out.find("sliding_window 16"), std::string::npos) << shorter.out;
  EXPECT_NE(read("back/config.yaml").find("context: 16"), std::string::npos);
  expect_refusal("convert there --to siamese -o more model.context=24", 2,
                 "model.context: expected at most 16 (sliding_window");
}

// A file as llama2.c's export writes it, from a model of ours: q and k with the turned pairs side by side.
TEST_F(Import, ModelsOfLlama2c) {
  make_run("model.norm_eps=1e-5 model.tied=true");
  ok("convert run --to meta-llama -o meta.safetensors --dtype float32");
  const std::string file = read("meta.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const Json header = Json::parse(file.substr(8, length));
  const auto bytes = [&](const std::string& name) {
    const auto at = header.at(name).at("data_offsets").get<std::vector<size_t>>();
    return file.substr(8 + length + at[0], at[1] - at[0]);
  };
  const int32_t width = 16, layers = 2, heads = 2, context = 24;
  const auto hidden = header.at("layers.0.feed_forward.w1.weight").at("shape")[0].get<int32_t>();
  const auto vocab = header.at("tok_embeddings.weight").at("shape")[0].get<int32_t>();
  const int32_t numbers[] = {width, hidden, layers, heads, heads, vocab, context};
  std::string bin(reinterpret_cast<const char*>(numbers), sizeof numbers);
  bin += bytes("tok_embeddings.weight");
  for (const char* const part : {"attention_norm", "attention.wq", "attention.wk", "attention.wv", "attention.wo",
                                 "ffn_norm", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3"}) {
    for (int layer = 0; layer < layers; ++layer)
      bin += bytes("layers." + std::to_string(layer) + "." + part + ".weight");
  }
  bin += bytes("norm.weight") + std::string(static_cast<size_t>(context * (width / heads)) * 4, '\0');
  write("model.bin", bin);
  ok("convert model.bin --to siamese -o back");
  EXPECT_EQ(said("back"), said("run"));
  ok("inspect model.bin");
  write("model.bin", bin.substr(0, bin.size() - 4));
  expect_refusal("convert model.bin --to siamese -o more", 3, "model.bin: expected");
}

}  // namespace
}  // namespace siamese::cli

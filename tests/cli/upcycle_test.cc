#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/io/safetensors.h"

namespace siamese::cli {
namespace {

class UpcycleVerb : public CommandTest {
 protected:
  void train_pre(const std::string& overrides = "") const {
    const CommandResult result = run(tiny + "model.residual=pre --quiet --out pre " + overrides);
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }

  nlohmann::json upcycled(const std::string& scheme, const std::string& more = "") const {
    const CommandResult result = run("upcycle pre --to '" + scheme + "' -o up --json " + more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.exit_code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json::object();
  }

  double eval_loss(const std::string& name) const {
    return nlohmann::json::parse(run("eval " + name + " --json eval.problems=0").out)["loss"];
  }

  // Of every X-side tensor of a model file the largest entry.
  static std::map<std::string, float> x_side(const std::filesystem::path& file) {
    const auto tensors = io::SafetensorsFile::open(file);
    std::map<std::string, float> largest;
    for (const auto& tensor : tensors.tensors()) {
      if (tensor.name.find("x_norm") == std::string::npos && tensor.name.find("x_scale") == std::string::npos) continue;
      std::vector<float> values(tensor.bytes / sizeof(float));
      std::memcpy(values.data(), tensor.data, tensor.bytes);
      for (const float value : values) largest[tensor.name] = std::max(largest[tensor.name], std::abs(value));
    }
    return largest;
  }
};

TEST_F(UpcycleVerb, ContinuesAPreNormModelWithBothStreams) {
  train_pre();
  const auto json = upcycled("siamese(final_norm=false,input_norm=false)");
  EXPECT_EQ(json["residual"], "siamese(input_norm=false, final_norm=false)");
  EXPECT_EQ(json["source"], "pre/step6");
  EXPECT_EQ(json["step"], 6);
  EXPECT_EQ(json["exact"], true);
  EXPECT_EQ(json["data"], "held_out");
  EXPECT_EQ(json["tensors"]["zero"], 5);
  EXPECT_EQ(json["tensors"]["one"], 0);
  EXPECT_EQ(json["tensors"]["copied"], 5);
  EXPECT_EQ(json["tensors"]["sublayers_copied"], 9);  // the tied embedding, four matrices a block
  EXPECT_EQ(json["parameters_after"].get<int64_t>() - json["parameters_before"].get<int64_t>(), 5 * 16);
  EXPECT_LE(json["max_logit_difference"].get<double>(), 1e-5);
  EXPECT_NEAR(json["loss_before"].get<double>(), eval_loss("pre"), 1e-9);
  EXPECT_NEAR(json["loss_after"].get<double>(), eval_loss("up"), 1e-9);
  EXPECT_NEAR(eval_loss("up"), eval_loss("pre"), 1e-5);
  EXPECT_EQ(run("generate up --prompt 1+1= --max-tokens 5").out, run("generate pre --prompt 1+1= --max-tokens 5").out);
  for (const auto& [name, largest] : x_side(folder / "up/model.safetensors")) EXPECT_EQ(largest, 0) << name;

  ASSERT_EQ(run("train up/config.yaml init.from=up train.steps=3 --quiet --out next").exit_code, 0);
  std::istringstream lines(read("next/metrics.jsonl"));
  int steps = 0;
  for (std::string line; std::getline(lines, line); ++steps) {
    EXPECT_TRUE(nlohmann::json::parse(line)["loss"].is_number()) << line;  // null when not finite
  }
  EXPECT_EQ(steps, 3);
  const auto moved = x_side(folder / "next/step3/model.safetensors");
  EXPECT_EQ(moved.size(), 5U);
  for (const auto& [name, largest] : moved) EXPECT_GT(largest, 0) << name;
}

// The two schemes are compared in float32, also of a run in bfloat16: its rounding would hide what the change did.
// How many samples a pass has is no property of weights: what suited the batch of one run may not divide that of the
// next.
TEST_F(UpcycleVerb, TheNextRunChoosesItsOwnMicroBatch) {
  train_pre("train.batch=32");
  for (const std::string command :
       {"convert pre --to siamese -o weights", "upcycle weights --to siamese -o two",
        "train two/config.yaml init.from=two train.batch=4 train.steps=1 --quiet --out next",
        "convert pre --to siamese -o chosen train.micro_batch=4",
        "train chosen/config.yaml init.from=chosen train.batch=8 train.steps=1 --quiet --out with_four"}) {
    const CommandResult result = run(command);
    ASSERT_EQ(result.exit_code, 0) << command << "\n" << result.error;
  }
  EXPECT_NE(read("next/config.yaml").find("micro_batch: 4\n"), std::string::npos);
  EXPECT_NE(read("with_four/config.yaml").find("micro_batch: 4\n"), std::string::npos);
}

TEST_F(UpcycleVerb, ComparesInFloat32) {
  train_pre("engine.precision=bfloat16");
  const auto json = upcycled("siamese(final_norm=false,input_norm=false)");
  EXPECT_LE(json["max_logit_difference"].get<double>(), 1e-5);
  EXPECT_NE(read("up/config.yaml").find("precision: bfloat16"), std::string::npos);
}

TEST_F(UpcycleVerb, TellsWhatItDid) {
  train_pre("model.attention_norm=qkv");
  const CommandResult result = run("upcycle pre/step4 --to 'siamese(x=hybrid)' --out deep/up");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const char* const words :
       {"pre/step4 (pre, step 4) -> deep/up (siamese(x=hybrid))", "5 set to 0, 3 set to 1, 5 copied",
        "other parameters: 15 copied", "largest difference of a logit", "the same function but for model.norm_eps",
        "train on: siamese train deep/up/config.yaml init.from=deep/up --out RUN"}) {
    EXPECT_NE(result.out.find(words), std::string::npos) << words << "\n" << result.out;
  }
  EXPECT_NE(read("deep/up/config.yaml").find("attention_norm: qkv"), std::string::npos);
  EXPECT_NEAR(eval_loss("deep/up"), eval_loss("pre/step4"), 1e-2);
  // What was pinned in the config is what the new run must have, too.
  EXPECT_EQ(run("train deep/up/config.yaml init.from=deep/up train.steps=1 --quiet --out next").exit_code, 0);
}

TEST_F(UpcycleVerb, UsesRandomTokensWhenTheDataIsGone) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "what is read is held out here ";
  write("book.txt", text);
  train_pre("data.source=text data.train=[book.txt]");
  std::filesystem::remove(folder / "book.txt");
  const auto json = upcycled("siamese(input_norm=false, final_norm=false)");
  EXPECT_EQ(json["data"], "random");
  EXPECT_LE(json["max_logit_difference"].get<double>(), 1e-5);
  EXPECT_TRUE(json["loss_after"].is_number());
  const CommandResult said = run("upcycle pre --to siamese -o other");
  EXPECT_NE(said.out.find("no held-out data, random tokens instead: "), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("book.txt"), std::string::npos) << said.out;
}

TEST_F(UpcycleVerb, ContinuesAPreNormVit) {
  const std::string few =
      " train.steps=4 train.batch=4 eval.batches=1 train.checkpoint_every=2 engine.threads=1 --quiet --out ";
  ASSERT_EQ(run("train vit-micro model.residual=pre" + few + "pre").exit_code, 0);
  const auto json = upcycled("siamese(final_norm=false,input_norm=false)");
  EXPECT_EQ(json["source"], "pre/step4");
  EXPECT_EQ(json["exact"], true);
  EXPECT_EQ(json["data"], "held_out");
  EXPECT_LE(json["max_logit_difference"].get<double>(), 1e-5);
  EXPECT_NEAR(json["loss_after"].get<double>(), json["loss_before"].get<double>(), 1e-6);
  const auto judged = [&](const std::string& name) {
    return nlohmann::json::parse(run("eval " + name + " --json").out)["classification"];
  };
  EXPECT_EQ(judged("up"), judged("pre"));
  EXPECT_EQ(run("train up/config.yaml init.from=up" + few + "next").exit_code, 0);
  // Where the data cannot be read, random images take their place.
  const CommandResult said = run("upcycle pre --to siamese -o other data.source=folder data.train=[gone]");
  EXPECT_NE(said.out.find("no held-out data, random images instead: "), std::string::npos) << said.out << said.error;
}

TEST_F(UpcycleVerb, RefusesInOneLine) {
  train_pre();
  expect_refusal("upcycle pre --to post -o up", 2, "upcycling to post: it cannot compute what a Pre-Norm model does");
  expect_refusal("upcycle pre --to 'siamese(x=hybrid)' -o up", 2, "model.attention_norm=qkv");
  expect_refusal("upcycle pre --to nope -o up", 2, "unknown residual scheme 'nope'");
  expect_refusal("upcycle pre -o up", 2, "--to");
  expect_refusal("upcycle pre --to siamese", 2, "--out");
  expect_refusal("upcycle nothing --to siamese -o up", 3, "nothing");
  EXPECT_FALSE(exists("up"));
  upcycled("siamese");
  const std::string weights = read("up/model.safetensors");
  expect_refusal("upcycle pre --to pre -o up", 2, "up: exists already; --overwrite replaces it");
  expect_refusal("upcycle pre --to siamese -o pre --overwrite", 2, "holds something else");
  EXPECT_EQ(read("up/model.safetensors"), weights);
  upcycled("pre", "--overwrite");
  EXPECT_NE(read("up/config.yaml").find("residual: pre\n"), std::string::npos);
  expect_refusal("upcycle up --to siamese -o up --overwrite", 2, "up: is the source itself");
  expect_refusal("upcycle up --to siamese -o ''", 2, "--out");
  upcycled("siamese", "--overwrite");
  expect_refusal("upcycle up --to siamese -o again", 2,
                 "up: upcycling starts from a Pre-Norm model; this one is siamese");
  expect_refusal("resume up", 3, "up: nothing to resume");
  expect_refusal("train up/config.yaml model.residual=pre init.from=up --out next", 3,
                 "expected a model with residual scheme pre, got siamese");
  expect_refusal("train up/config.yaml init.from=pre --out next", 3, "got pre (`siamese upcycle`");
  EXPECT_FALSE(exists("next"));
}

}  // namespace
}  // namespace siamese::cli

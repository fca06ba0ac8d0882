// A recipe of each family, from the first step to its report, as a user would go.
#include <cmath>
#include <cstring>

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/io/png.h"
#include "siamese/io/safetensors.h"

namespace siamese::cli {
namespace {

using Json = nlohmann::json;

class Families : public CommandTest {
 protected:
  // Trains a recipe for three steps; then evaluates, resumes and reports it. Returns the run's part of the report.
  Json whole_way(const std::string& recipe, const std::string& overrides = "") const {
    const std::string name = recipe.substr(0, recipe.find('-'));
    train(recipe, name, overrides);
    expect_own_evaluation(name);
    const std::string metrics = read(name + "/metrics.jsonl");
    const CommandResult resumed = run("resume " + name);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
    EXPECT_EQ(read(name + "/metrics.jsonl"), metrics);
    EXPECT_EQ(run("report " + name).out, name + "/report.html\n");
    const std::string page = read(name + "/report.html");
    const std::string open = "<script type=\"application/json\" id=\"report-data\">";
    const size_t from = page.find(open) + open.size();
    const Json data = Json::parse(page.substr(from, page.find("</script>", from) - from), nullptr, false);
    if (!data.is_object() || data.value("runs", Json()).size() != 1) {
      ADD_FAILURE() << "no run in the report";
      return Json::object();
    }
    EXPECT_EQ(data["runs"][0]["family"], name);
    EXPECT_EQ(data["runs"][0]["notes"], Json::array());
    return data["runs"][0];
  }

  void train(const std::string& recipe, const std::string& out, const std::string& overrides) const {
    const CommandResult result = run("train " + recipe +
                                     " train.steps=3 train.batch=4 train.eval_every=2 eval.batches=1 "
                                     "engine.threads=1 model.width=48 model.blocks=2 model.heads=2 " +
                                     overrides + " --out " + out);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_NE(result.error.find("step 3/3"), std::string::npos) << result.error;
  }

  // `eval` says what the run's own last evaluation said.
  void expect_own_evaluation(const std::string& name) const {
    const CommandResult result = run("eval " + name + " --json");
    ASSERT_EQ(result.exit_code, 0) << result.error;
    std::string last = read(name + "/eval.jsonl");
    last.pop_back();
    Json expected = Json::parse(last.substr(last.rfind('\n') + 1));
    expected.erase("samples");  // `eval` draws none without a classifier
    Json said = Json::parse(result.out);
    for (Json* const line : {&said, &expected}) line->erase("checksum");  // of a line with its samples
    EXPECT_EQ(said, expected);
  }
};

TEST_F(Families, MixtureOfExperts) {
  const Json shown = whole_way("moe-micro", "data.digits=1 eval.problems=1 train.record_every=2");
  EXPECT_EQ(shown["experts"].size(), 2U);  // steps 1 and 2
  EXPECT_EQ(shown["experts"][1]["loads"][0].size(), 8U);
  for (const char* const key : {"balance_loss", "router_z_loss", "expert_max_load"}) {
    EXPECT_TRUE(shown.contains(key)) << key;
  }
  EXPECT_TRUE(shown["measures"].contains("expert_max_load"));
  const CommandResult text = run("generate moe --prompt 1+1= --max-tokens 3");
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(run("eval moe").out.find("perplexity"), std::string::npos);
}

TEST_F(Families, VisionTransformer) {
  const Json shown = whole_way("vit-micro");
  EXPECT_EQ(shown["confusion"]["classes"].size(), 12U);
  EXPECT_EQ(shown["confusion"]["counts"].size(), 12U);
  EXPECT_TRUE(shown["measures"].contains("top1"));
  EXPECT_TRUE(shown["samples_per_s"].is_number());
  const std::string said = run("eval vit").out;
  EXPECT_NE(said.find("over 4 images (baseline "), std::string::npos) << said;
  EXPECT_NE(said.find("), top-1 "), std::string::npos) << said;
  EXPECT_EQ(run("eval vit eval.averaged=true").exit_code, 0);
  expect_refusal("sample vit --grid x.png", 2, "vit: sample needs a model of family dit");
  expect_refusal("generate vit --prompt 1", 2, "vit");
  EXPECT_FALSE(exists("x.png"));
}

TEST_F(Families, DiffusionTransformer) {
  const Json shown = whole_way("dit-micro", "eval.samples=5 eval.sampler_steps=3");
  EXPECT_TRUE(shown.contains("mse") && shown.contains("vlb"));
  ASSERT_EQ(shown["evals"].size(), 2U);
  EXPECT_TRUE(shown["evals"][1]["samples"]["grid"].get<std::string>().starts_with("data:image/png;base64,"));
  const io::Image picture = io::read_png(folder / "dit/samples/step3.png");
  EXPECT_EQ(picture.width, 3 * 32 + 2 * 2);  // five in rows of three
  EXPECT_EQ(picture.height, 2 * 32 + 2);

  const std::string sample = "sample dit --n 4 --steps 3 ";
  const CommandResult drawn = run(sample + "--grid out.png --out x.safetensors --labels 3,1");
  ASSERT_EQ(drawn.exit_code, 0) << drawn.error;
  EXPECT_NE(drawn.out.find("4 images of dit/step3, step 3 (averaged weights), ddim in 3 steps, guidance 1"),
            std::string::npos)
      << drawn.out;
  const io::Image grid = io::read_png(folder / "out.png");
  EXPECT_EQ(grid.width, 2 * 32 + 2);
  EXPECT_EQ(grid.channels, 3);
  const auto file = io::SafetensorsFile::open(folder / "x.safetensors");
  ASSERT_NE(file.find("samples"), nullptr);
  EXPECT_EQ(file.find("samples")->shape, (std::vector<int64_t>{4, 3, 32, 32}));
  ASSERT_NE(file.find("labels"), nullptr);
  int64_t labels[4] = {};
  ASSERT_EQ(file.find("labels")->bytes, sizeof labels);
  std::memcpy(labels, file.find("labels")->data, sizeof labels);
  EXPECT_EQ(std::vector<int64_t>(labels, labels + 4), (std::vector<int64_t>{3, 1, 3, 1}));
  // The same again, another seed, the other weights.
  ASSERT_EQ(run(sample + "--npz x.npz --labels 3,1").exit_code, 0);
  const std::string archive = read("x.npz");
  EXPECT_NE(archive.find("arr_0.npy"), std::string::npos);
  EXPECT_NE(archive.find("'shape': (4, "), std::string::npos) << archive.substr(0, 200);
  ASSERT_EQ(run(sample + "--grid again.png --labels 3,1").exit_code, 0);
  EXPECT_EQ(read("again.png"), read("out.png"));
  ASSERT_EQ(run(sample + "--grid seed.png --labels 3,1 --seed 9").exit_code, 0);
  EXPECT_NE(read("seed.png"), read("out.png"));
  EXPECT_NE(run(sample + "--grid trained.png --trained").out.find("(trained weights)"), std::string::npos);
}

TEST_F(Families, SampleMistakes) {
  train("dit-micro", "dit", "eval.samples=0");
  EXPECT_FALSE(exists("dit/samples"));
  expect_refusal("sample dit", 2,
                 "expected --grid PICTURE.png, --out TENSORS.safetensors or --npz IMAGES.npz, got none");
  expect_refusal("sample dit --grid x.png --labels 12", 2, "--labels: expected classes from 0 to 11, got 12");
  expect_refusal("sample dit --grid x.png --labels 0,-1", 2, "--labels");
  expect_refusal("sample dit --grid x.png --labels one", 2, "--labels");
  expect_refusal("sample dit --grid x.png --sampler euler", 2, "--sampler: expected ddpm or ddim, got 'euler'");
  expect_refusal("sample dit --grid x.png --steps 0", 2, "--steps");
  expect_refusal("sample dit --grid x.png --n 0", 2, "--n");
  expect_refusal("sample nowhere --grid x.png", 3, "nowhere");
  expect_refusal("sample dit --n 1 --steps 2 --grid nowhere/x.png", 2, "nowhere/x.png");
  EXPECT_FALSE(exists("x.png"));
  ASSERT_EQ(run(tiny + "--out lm").exit_code, 0);
  expect_refusal("sample lm --grid x.png", 2, "lm: sample needs a model of family dit");
}

TEST_F(Families, AClassifierJudgesSamples) {
  train("vit-micro", "vit", "");
  train("dit-micro", "dit", "eval.samples=0");
  const CommandResult judged =
      run("eval dit eval.classifier=vit eval.samples=16 eval.sampler_steps=2 eval.batches=4 --json");
  ASSERT_EQ(judged.exit_code, 0) << judged.error;
  const Json samples = Json::parse(judged.out).at("samples");
  EXPECT_EQ(samples["count"], 16);
  EXPECT_EQ(samples["classifier"], "vit");
  EXPECT_GT(samples.at("feature_distance").get<double>(), 0);
  const double share = samples.at("class_agreement").get<double>();
  EXPECT_TRUE(share >= 0 && share <= 1 && share * 16 == std::floor(share * 16)) << share;
  const std::string text = run("eval dit eval.classifier=vit eval.samples=4 eval.sampler_steps=2").out;
  EXPECT_NE(text.find("feature distance"), std::string::npos) << text;
  expect_refusal("eval dit eval.classifier=dit eval.samples=4", 3, "expected a model of family vit, got dit");
  expect_refusal("eval dit eval.classifier=gone eval.samples=4", 3, "eval.classifier: gone");
}

// The judge is kept as the checkpoint it was: the same sweep once more finds its runs done.
TEST_F(Families, ASweepWithAJudgeCanBeRepeated) {
  train("vit-micro", "vit", "");
  write("judged.yaml",
        "config: " SIAMESE_CONFIG_FOLDER
        "/dit-micro.yaml\nset: {model.width: 48, model.blocks: 2, train.steps: 1, train.batch: 4, train.ema: 0.5, "
        "eval.batches: 1, eval.samples: 4, eval.sampler_steps: 2, eval.classifier: vit}\n"
        "variants: [{model.residual: pre}]\n");
  for (int time = 0; time < 2; ++time) {
    const CommandResult result = run("sweep judged.yaml --out judged");
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_NE(result.out.find("feature distance"), std::string::npos) << result.out;
  }
  EXPECT_NE(read("judged/pre/config.yaml").find("classifier: vit/step"), std::string::npos);
}

}  // namespace
}  // namespace siamese::cli

#include "siamese/train/sweep_plan.h"

#include <set>

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"

namespace siamese::train {
namespace {

namespace fs = std::filesystem;

SweepPlan plan(const TemporaryFolder& folder, const std::string& text, const std::vector<std::string>& overrides = {}) {
  std::ofstream(folder / "base.yaml") << "train: {steps: 7}\n";
  std::ofstream(folder / "sweep.yaml") << text;
  return plan_sweep(folder / "sweep.yaml", overrides, {});
}

TEST(SweepPlan, EveryVariantAtEveryPointOfTheGrid) {
  const TemporaryFolder folder("sweep");
  const auto result =
      plan(folder,
           "sweep: name\nconfig: base\nset: {model.width: 32}\n"
           "variants:\n  - {model.residual: pre, model.attention_norm: qkv}\n  - {model.residual: siamese(x=hybrid)}\n"
           "grid: {optim.lr: [1e-3, 0.01], train.seed: [1, 2, 3]}\n",
           {"model.blocks=2"});
  EXPECT_EQ(result.name, "name");
  ASSERT_EQ(result.runs.size(), 12U);
  EXPECT_EQ(result.runs[0].variant, "pre, attention_norm=qkv");
  EXPECT_EQ(result.runs[0].dir, "pre-attention_norm-qkv-lr1e-3-seed1");
  EXPECT_EQ(result.runs[1].dir, "siamese-x-hybrid-lr1e-3-seed1");
  EXPECT_EQ(result.runs[11].config.optim.lr, 0.01);
  EXPECT_EQ(result.runs[11].config.train.seed, 3U);
  EXPECT_EQ(result.runs[11].config.model.residual, "siamese(x=hybrid)");
  EXPECT_EQ(result.runs[11].config.model.width, 32);
  EXPECT_EQ(result.runs[11].config.model.blocks, 2);
  EXPECT_EQ(result.runs[11].config.train.steps, 7);
  std::set<std::string> names;
  for (const auto& run : result.runs) names.insert(run.dir);
  EXPECT_EQ(names.size(), 12U);
  EXPECT_EQ(nlohmann::json::parse(to_json(result))["runs"].size(), 12U);
}

// The report averages runs of one variant and rate: no other key of the grid may hide in there.
TEST(SweepPlan, AGridOverSchemesMakesVariants) {
  const TemporaryFolder folder("sweep_grid");
  const auto result =
      plan(folder, "config: base\ngrid: {model.residual: [pre, post], model.width: [32, 64], train.seed: [1, 2]}\n");
  std::set<std::string> variants;
  for (const auto& run : result.runs) variants.insert(run.variant);
  EXPECT_EQ(variants, (std::set<std::string>{"pre, width=32", "pre, width=64", "post, width=32", "post, width=64"}));
}

TEST(SweepPlan, OptimizersAndListsAreVariantsToo) {
  const TemporaryFolder folder("sweep_optimizers");
  const auto result = plan(folder,
                           "config: base\ngrid: {optim.name: [adamw, muon], optim.freeze: [[], [norm], [norm, "
                           "embedding]], optim.lr_scale.linear: [1, 2]}\n");
  std::set<std::string> dirs, variants;
  for (const auto& run : result.runs) {
    dirs.insert(run.dir);
    variants.insert(run.variant);
  }
  EXPECT_EQ(dirs.size(), 12U);
  EXPECT_EQ(dirs.count("base-namemuon-freeze-norm-embedding-linear2"), 1U) << *dirs.rbegin();
  EXPECT_EQ(variants.count("name=adamw, freeze=[norm], linear=2"), 1U) << *variants.begin();
}

TEST(SweepPlan, AVariantMayHaveARecipeOfItsOwn) {
  const TemporaryFolder folder("sweep_recipes");
  std::ofstream(folder / "pictures.yaml") << "model: {family: vit, residual: post}\ndata: {source: shapes}\n"
                                             "train: {steps: 9}\n";
  const auto result = plan(folder,
                           "config: base\nset: {model.width: 32}\nvariants:\n"
                           "  - {config: pictures}\n"
                           "  - {config: pictures, model.residual: pre, train.batch: 8}\n"
                           "  - {config: pictures, label: mine, train.steps: 11}\n"
                           "  - {model.residual: pre}\n"
                           "grid: {train.seed: [1, 2]}\n");
  ASSERT_EQ(result.runs.size(), 8U);
  EXPECT_EQ(result.runs[0].variant, "pictures");
  EXPECT_EQ(result.runs[0].config.model.family, models::Family::vit);
  EXPECT_EQ(result.runs[0].config.model.residual, "post");
  EXPECT_EQ(result.runs[0].config.train.steps, 9);
  EXPECT_EQ(result.runs[0].config.model.width, 32);
  EXPECT_EQ(result.runs[1].variant, "pictures, pre, batch=8");
  EXPECT_EQ(result.runs[1].dir, "pictures-pre-batch-8-seed1");
  EXPECT_EQ(result.runs[1].config.model.residual, "pre");
  EXPECT_EQ(result.runs[2].variant, "mine");
  EXPECT_EQ(result.runs[2].config.train.steps, 11);
  EXPECT_EQ(result.runs[3].variant, "pre");
  EXPECT_EQ(result.runs[3].config.model.family, models::Family::lm);
  EXPECT_EQ(result.runs[3].config.train.steps, 7);
  EXPECT_EQ(result.runs[4].config.train.seed, 2U);
  // The recipe above may be missing when every variant has its own, and only then.
  EXPECT_EQ(plan(folder, "variants: [{config: pictures}, {config: base}]\n").runs.size(), 2U);
  EXPECT_THROW(plan(folder, "variants: [{config: pictures}, {model.residual: pre}]\n"), UsageError);
  EXPECT_THROW(plan(folder, "config: base\nvariants: [{config: nowhere}]\n"), UsageError);
}

TEST(SweepPlan, TheRecordLiesWhereTheFileSays) {
  const TemporaryFolder folder("sweep_record_path");
  EXPECT_TRUE(plan(folder, "config: base\n").record.empty());
  EXPECT_EQ(plan(folder, "config: base\nrecord: ../results/a.jsonl\n").record,
            (folder / "..").lexically_normal().parent_path() / "results" / "a.jsonl");
  EXPECT_EQ(plan(folder, "config: base\nrecord: /elsewhere/a.jsonl\n").record, "/elsewhere/a.jsonl");
  EXPECT_THROW(plan(folder, "config: base\nrecord: ''\n"), UsageError);
  EXPECT_THROW(plan(folder, "config: base\nrecord: [a]\n"), UsageError);
}

TEST(SweepPlan, ARecipeIsSentToTheOtherVerb) {
  const TemporaryFolder folder("sweep_recipe");
  const auto said = [&](const std::string& text) {
    try {
      plan(folder, text);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const char* const recipe : {"model: {residual: pre}\ntrain: {steps: 3}\n", "preset: base\n"}) {
    EXPECT_NE(said(recipe).find(": is the config of one run, not a sweep: siamese train "), std::string::npos)
        << recipe;
  }
  EXPECT_NE(said("config: base\nmodel: {residual: pre}\n").find("model: unknown key"), std::string::npos);
  EXPECT_NE(said("config: base\nvariants:\n  - {model.residual: siamese(x=hybrid, gain_x=0.5)}\n")
                .find(":3: gain_x=0: unknown key (a comma inside { } ends the value: put the scheme in quotes)"),
            std::string::npos);
}

TEST(SweepPlan, MistakesAreNamed) {
  const TemporaryFolder folder("sweep_bad");
  EXPECT_THROW(plan(folder, "config: base\nvariant: []\n"), UsageError);
  EXPECT_THROW(plan(folder, "variants: []\n"), UsageError);
  EXPECT_THROW(plan(folder, "config: base\nvariants:\n  - {model.residual: pre}\n  - {model.residual: pre}\n"),
               UsageError);
  EXPECT_THROW(plan(folder, "config: base\ngrid: {train.seed: []}\n"), UsageError);
  EXPECT_THROW(plan(folder, "config: base\ngrid: {train.sed: [1]}\n"), UsageError);
  EXPECT_THROW(plan(folder, "- a\n"), UsageError);
  EXPECT_THROW(plan(folder, "config: base\ngrid: {train.seed: [1, 2]}\n", {"train.seed=5"}), UsageError);
  EXPECT_THROW(plan(folder, "config: base\ngrid: {train.seed: [1, 2]}\n", {"train={seed: 5}"}), UsageError);
  EXPECT_THROW(plan(folder, "config: base\nvariants: [{model.residual: pre}]\n", {"model.residual=post"}), UsageError);
  EXPECT_THROW(plan(folder, "config: base\nvariants: {model.residual: pre}\n"), UsageError);
  EXPECT_THROW(plan(folder, "config: base\nvariants: []\n"), UsageError);
  EXPECT_THROW(plan(folder, "config: base\ngrid: [1]\n"), UsageError);
  EXPECT_THROW(plan(folder, "sweep:\nconfig: base\n"), UsageError);
  EXPECT_THROW(plan(folder, "sweep: ../up\nconfig: base\n"), UsageError);
  EXPECT_THROW(plan(folder, "sweep: ''\nconfig: base\n"), UsageError);
}

}  // namespace
}  // namespace siamese::train

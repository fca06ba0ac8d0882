// What a run is said to need, beside what it then has.
#include "siamese/train/needs.h"

#include <numeric>
#include <regex>

#include "tests/train/tiny_run.h"

#include "siamese/config/load.h"
#include "siamese/models/pass_memory.h"
#include "siamese/models/registry.h"
#include "siamese/train/optimizer.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace {

// "#   parameters    1,279,438,848 (1.279B)" at the head of a recipe.
int64_t written_parameters(const std::string& name) {
  const std::filesystem::path folder = SIAMESE_CONFIG_FOLDER;
  const bool published = std::filesystem::exists(folder / "published" / (name + ".yaml"));
  std::ifstream file((published ? folder / "published" : folder) / (name + ".yaml"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("#   parameters +([0-9,]+)"))) return 0;
  return std::stoll(std::regex_replace(found[1].str(), std::regex(","), ""));
}

TEST(Needs, ParametersOfEveryRecipeAreThoseThatItsFileNames) {
  const std::vector<std::filesystem::path> folders = {SIAMESE_CONFIG_FOLDER};
  int recipes = 0;
  for (const auto& name : config::list_configs(folders)) {
    const config::Value value = config::load(name, {}, folders);
    if (value.find("variants") != nullptr || name.starts_with("tasks/")) continue;
    SCOPED_TRACE(name);
    const Needs needs = needs_of(read_config(value));
    EXPECT_EQ(needs.parameters, written_parameters(name));
    EXPECT_EQ(std::accumulate(needs.parameters_by_part.begin(), needs.parameters_by_part.end(), int64_t{0}),
              needs.parameters);
    EXPECT_EQ(needs.run.outside_blocks + static_cast<double>(needs.run.blocks) * needs.run.largest_block,
              needs.run.weights)
        << "blocks of a recipe are equal";
    EXPECT_GT(needs.run.recomputed.each_row, 0);
    EXPECT_LT(needs.run.recomputed.of(1), needs.run.kept.of(1));
    ++recipes;
  }
  EXPECT_GE(recipes, 20);
}

std::vector<RunConfig> every_family(const std::vector<std::string>& overrides = {}) {
  std::vector<RunConfig> configs = {tiny_config(overrides)};
  for (const std::string& family : other_families()) configs.push_back(tiny_family(family, overrides));
  return configs;
}

double bytes_of(const std::vector<models::NamedTensor>& tensors) {
  double bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<double>(tensor.value.nbytes());
  return bytes;
}

TEST(Needs, StateIsThatOfTheTrainer) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{}, {"optim.name=muon"}, {"optim.freeze=[norm]", "train.ema=0.9"}}) {
    for (const RunConfig& config : every_family(overrides)) {
      SCOPED_TRACE(std::string(enum_text(config.model.family)) + (overrides.empty() ? "" : " " + overrides.front()));
      const plan::RunNeeds run = needs_of(config).run;
      const Trainer trainer(config);
      const nn::Parameters& parameters = trainer.model().parameters();
      EXPECT_EQ(run.weights, static_cast<double>(parameters.count()));
      EXPECT_EQ(4 * run.moments, bytes_of(make_optimizer(config.optim, parameters)->state()));
      double trained = 0;
      for (const auto& parameter : parameters.list()) {
        if (parameter.value.grad().defined()) trained += static_cast<double>(parameter.value.numel());
      }
      EXPECT_EQ(run.trained, trained);
      EXPECT_EQ(run.averages, config.train.ema > 0 ? run.weights : 0);
    }
  }
}

TEST(Needs, ActivationsGrowOnAStraightLine) {
  for (const RunConfig& config : every_family()) {
    SCOPED_TRACE(enum_text(config.model.family));
    const plan::RunNeeds run = needs_of(config).run;
    for (const int64_t rows : {1, 2, 5}) {
      const auto peak = [&](int64_t recompute) {
        return static_cast<double>(
            models::pass_memory(config.model, rows, recompute, ops::Precision::float32).peak_bytes);
      };
      const auto count = static_cast<double>(rows);
      EXPECT_NEAR(run.kept.of(count), peak(0), 0.01 * peak(0)) << rows;
      EXPECT_NEAR(run.recomputed.of(count), peak(1), 0.01 * peak(1)) << rows;
    }
  }
}

TEST(Needs, OfAMixtureByHand) {
  const RunConfig config = tiny_family("moe", {"model.tied=false"});
  const Needs needs = needs_of(config);
  const models::ModelConfig& model = config.model;
  const int64_t expert = 3 * model.width * model.ffn_width;
  const int64_t idle = model.blocks * (model.experts - model.experts_per_token) * expert;
  EXPECT_EQ(needs.parameters - needs.active_parameters, idle);
  EXPECT_EQ(needs.dense_forward_flops_each_token - needs.forward_flops_each_token, static_cast<double>(2 * idle));
  EXPECT_EQ(needs.tokens_each_step, static_cast<double>(config.train.batch * model.context));
  // Keys and values of every block, head and token, in float32.
  EXPECT_EQ(needs.key_value_bytes, 2 * model.blocks * model.width * model.context * 4);
  EXPECT_EQ(needs_of(tiny_family("vit")).key_value_bytes, 0);
}

TEST(Needs, Bfloat16KeepsACopyOfEveryMatrix) {
  const RunConfig config = tiny_config({"engine.precision=bfloat16"});
  const plan::RunNeeds half = needs_of(config).run, whole = needs_of(tiny_config()).run;
  double matrices = 0;
  const auto model = models::make_model(config.model, config.init, 0, at::kMeta);
  for (const auto& parameter : model->parameters().list()) {
    if (parameter.value.dim() == 2) matrices += static_cast<double>(parameter.value.numel());
  }
  EXPECT_EQ(half.rounded_weight_bytes, 2 * matrices) << "the tied head among them";
  EXPECT_EQ(half.operand_bytes, 2);
  EXPECT_EQ(whole.rounded_weight_bytes, 0);
  EXPECT_LT(half.kept.of(1), whole.kept.of(1));
}

}  // namespace
}  // namespace siamese::train

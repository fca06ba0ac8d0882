// Upcycling of the families beside the dense language model, whose tests are in upcycle_test.cc.
#include "tests/models/small_families.h"
#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/train/trainer.h"
#include "siamese/train/upcycle.h"

namespace siamese::train {
namespace {

using models::Family;

constexpr const char* kBare = "siamese(input_norm=false, final_norm=false)";

// A model as training could have left it: no gain is 1 and no shift 0.
LoadedModel trained_model(Family family, double eps, at::ScalarType dtype, const std::string& scheme = "pre") {
  LoadedModel source;
  source.checkpoint = "some/step7";
  source.config.model = models::small_family(family, scheme);
  source.config.model.norm_eps = eps;
  source.model = models::make_small(source.config.model, 3, dtype);
  const c10::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& parameter : source.model->parameters().list()) {
    if (parameter.kind != nn::ParameterKind::norm && parameter.kind != nn::ParameterKind::bias) continue;
    parameter.value.add_(testing::randn(parameter.value.sizes(), ++seed, dtype), 0.3);
  }
  return source;
}

at::Tensor logits_of(const models::Model& model, const models::ModelConfig& config) {
  const c10::NoGradGuard no_grad;
  models::Inputs inputs = models::family_inputs(config, 3, 11);
  if (!config.sees_images()) inputs.tokens = inputs.tokens.narrow(1, 0, config.context);
  return model.pass(inputs, {}).output;
}

double difference_of(Family family, const char* scheme, double eps, at::ScalarType dtype) {
  const LoadedModel source = trained_model(family, eps, dtype);
  const Upcycled result = upcycle(source, scheme);
  return testing::largest_difference(logits_of(*source.model, source.config.model),
                                     logits_of(*result.model, result.config.model));
}

TEST(UpcycleFamilies, IsTheSameFunctionWhereTheSchemeContainsPreNorm) {
  for (const Family family : {Family::moe, Family::vit}) {
    for (const char* const scheme : {"pre", "lns", "mixln(post=0)", kBare}) {
      EXPECT_LE(difference_of(family, scheme, 1e-6, at::kDouble), 1e-12) << models::case_name(family, scheme);
      EXPECT_LE(difference_of(family, scheme, 1e-6, at::kFloat), 1e-5) << models::case_name(family, scheme);
    }
    for (const char* const scheme : {"siamese", "hc"}) {
      EXPECT_LE(difference_of(family, scheme, 1e-12, at::kDouble), 1e-9) << models::case_name(family, scheme);
      EXPECT_GT(difference_of(family, scheme, 1e-4, at::kDouble), 1e-7) << models::case_name(family, scheme);
    }
  }
}

TEST(UpcycleFamilies, SiameseWithoutANormOfTheSumKeepsTheBits) {
  for (const Family family : {Family::moe, Family::vit}) {
    const LoadedModel source = trained_model(family, 1e-6, at::kFloat);
    const Upcycled result = upcycle(source, kBare);
    EXPECT_TRUE(result.exact);
    testing::expect_same_bits(logits_of(*result.model, result.config.model),
                              logits_of(*source.model, source.config.model), "logits");
  }
}

// Class token, positions, patches and head of a vit are copied; P of each of the six sites and the end is 0.
TEST(UpcycleFamilies, EveryParameterOfAVitComesFromSomewhere) {
  const LoadedModel source = trained_model(Family::vit, 1e-6, at::kDouble);
  const Upcycled result = upcycle(source, kBare);
  models::loss_and_gradients(*result.model, models::family_inputs(result.config.model, 3, 11), {});
  int zeros = 0;
  for (const auto& [name, kind, value, matrices] : result.model->parameters().list()) {
    const nn::Parameter* const before = source.model->parameters().find(name);
    EXPECT_TRUE(before == nullptr || at::equal(value, before->value)) << name;
    ASSERT_TRUE(value.grad().defined()) << name;
    if (name.find(".x_norm.") == std::string::npos) continue;
    ++zeros;
    EXPECT_EQ(testing::largest(value), 0) << name;
    EXPECT_GT(testing::largest(value.grad()), 1e-8) << name;
  }
  EXPECT_EQ(zeros, 14);  // gain and shift
}

TEST(UpcycleFamilies, AVitTrainsOnFromTheSavedWeights) {
  const TemporaryFolder folder("upcycle_vit");
  const std::vector<std::string> vit = {"model.family=vit", "model.width=16",
                                        "model.blocks=2",   "model.heads=2",
                                        "model.image=8",    "model.patch=4",
                                        "model.channels=1", "model.norm=layer",
                                        "model.classes=12", "data.source=shapes",
                                        "train.steps=4",    "train.batch=4",
                                        "eval.held_out=4",  "train.checkpoint_every=4",
                                        "engine.threads=1"};
  const auto config_of = [&](std::vector<std::string> more) {
    config::Value value = tree_of(vit, config::kFileLayer);
    for (const auto& assignment : more) config::apply_override(value, assignment);
    return read_config(value);
  };
  start_run(config_of({"model.residual=pre"}), folder / "pre", false, "", {});
  const auto first_loss = [&](const std::string& scheme, const std::filesystem::path& from) {
    Trainer trainer(config_of({"model.residual=" + scheme, "init.from=" + from.string()}));
    const double loss = trainer.step().loss;
    EXPECT_TRUE(std::isfinite(trainer.step().loss));
    return loss;
  };
  const double before = first_loss("pre", folder / "pre");
  const Upcycled result = upcycle(load_model(folder / "pre"), kBare);
  save_weights(folder / "up", result.config, *result.model, true);
  EXPECT_NEAR(first_loss(kBare, folder / "up"), before, 1e-6);
}

TEST(UpcycleFamilies, RefusesDitByName) {
  try {
    upcycle(trained_model(Family::dit, 1e-6, at::kFloat), "siamese");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("some/step7: upcycling takes models of family lm, moe and vit; this one is"
                        " dit"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace siamese::train

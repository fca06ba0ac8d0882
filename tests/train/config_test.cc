#include "siamese/train/config.h"

#include "tests/support/limited_child.h"
#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/config/load.h"
#include "siamese/config/yaml.h"
#include "siamese/kernels/simd.h"
#include "siamese/models/registry.h"

namespace siamese::train {
namespace {

std::string refusal(const std::string& override_text) {
  try {
    tiny_config({override_text});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RunConfig, TextRoundTrips) {
  const RunConfig config =
      tiny_config({"model.residual=siamese(x=hybrid, input_norm=false)", "optim.lr=0.1234567890123", "data.source=text",
                   "data.train=['a b.txt', \"c,d\"]", "train.seed=18446744073709551615"});
  const std::string text = config_text(config);
  EXPECT_EQ(config_text(read_config(config::parse_yaml(text, "again"))), text);
}

TEST(RunConfig, EveryKeyCanBeOverriddenByItsOwnPrintedValue) {
  const RunConfig config = tiny_config();
  for (const auto& [key, value] : config::flatten(config::print(config))) {
    const RunConfig again = tiny_config({key + "=" + value});
    EXPECT_EQ(config_text(again), config_text(config)) << key << "=" << value;
  }
}

TEST(RunConfig, RefusalsNameTheKey) {
  EXPECT_NE(refusal("optim.lr=-1").find("optim.lr: expected a number > 0, got -1"), std::string::npos)
      << refusal("optim.lr=-1");
  EXPECT_NE(refusal("optim.beta2=1").find("optim.beta2"), std::string::npos);
  EXPECT_NE(refusal("optim.name=muno").find("optim.name: expected one of adamw, muon"), std::string::npos);
  EXPECT_NE(refusal("optim.lr_scale.norm=0").find("optim.lr_scale.norm: expected a number > 0 (optim.freeze keeps"),
            std::string::npos)
      << refusal("optim.lr_scale.norm=0");
  EXPECT_NE(refusal("optim.muon.momentum=1").find("optim.muon.momentum: expected a number in [0, 1), got 1"),
            std::string::npos);
  EXPECT_NE(refusal("train.micro_batch=3").find("train.micro_batch: expected a divisor of train.batch (4), got 3"),
            std::string::npos);
  EXPECT_NE(refusal("train.setps=3").find("train.setps: unknown key (did you mean 'train.steps'?)"), std::string::npos)
      << refusal("train.setps=3");
  EXPECT_NE(refusal("train.steps=many").find("train.steps: expected a whole number, got 'many'"), std::string::npos);
  EXPECT_NE(refusal("train.steps=0").find("train.steps"), std::string::npos);
  EXPECT_NE(refusal("engine.ops=quick").find("engine.ops: expected one of auto, plain, fused"), std::string::npos);
  EXPECT_NE(refusal("optim.schedule.final=2").find("optim.schedule.final"), std::string::npos);
  EXPECT_NE(refusal("init.cut=-1").find("init.cut"), std::string::npos);
  EXPECT_NE(refusal("train.keep_last=-1").find("train.keep_last: expected a number >= 0, got -1"), std::string::npos);
  EXPECT_NE(refusal("train.keep_every=-1").find("train.keep_every"), std::string::npos);
  EXPECT_NE(refusal("train.max_hours=-1").find("train.max_hours: expected a number >= 0"), std::string::npos);
  EXPECT_NE(refusal("train.skip_outliers=-1").find("train.skip_outliers"), std::string::npos);
  EXPECT_NE(refusal("train.skip_window=7").find("train.skip_window: expected a number from 8 to 65536, got 7"),
            std::string::npos);
  EXPECT_NE(refusal("init.cut=1e-300").find("init.cut"), std::string::npos);
}

TEST(RunConfig, FamiliesRoundTripAndTakeTheirOwnValues) {
  for (const auto& family : other_families()) {
    const RunConfig config = tiny_family(family);
    const std::string text = config_text(config);
    EXPECT_EQ(config_text(read_config(config::parse_yaml(text, "again"))), text) << family;
    for (const auto& [key, value] : config::flatten(config::print(config))) {
      EXPECT_EQ(config_text(tiny_family(family, {key + "=" + value})), text) << family << " " << key << "=" << value;
    }
  }
}

TEST(RunConfig, FamiliesRefuseWhatDoesNotFit) {
  const auto said = [](const std::string& family, const std::string& assignment) -> std::string {
    try {
      tiny_family(family, {assignment});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  struct Refused {
    const char* family;
    const char* assignment;
    const char* text;
  };
  const std::vector<Refused> all = {
      {"vit", "data.source=arithmetic",
       "data.source: expected shapes, idx, cifar, folder or latents for model.family vit, got arithmetic"},
      {"moe", "data.source=shapes",
       "data.source: expected arithmetic, text or tokens for model.family moe, got shapes"},
      {"vit", "train.ema=1", "train.ema: expected a decay in [0, 1) (0 = none), got 1"},
      {"vit", "model.patch=5", "model.patch: expected a divisor of model.image (16), got 5"},
      {"moe", "model.experts_per_token=5",
       "model.experts_per_token: expected a number from 1 to model.experts (4), got 5"},
      {"moe", "model.experts_per_token=0", "model.experts_per_token: expected a number from 1"},
      {"moe", "model.bias=true", "model.bias: expected false for family moe"},
      {"moe", "model.positions=sincos", "model.positions: expected rope or learned for family moe, got sincos"},
      {"vit", "model.positions=rope", "model.positions: expected learned for family vit, got rope"},
      {"dit", "model.positions=learned", "model.positions: expected sincos for family dit, got learned"},
      {"vit", "model.classes=11", "model.classes: expected at least the 12 of the data, got 11"},
      {"vit", "model.drop_path=1", "model.drop_path: expected a share from 0 to below 1"},
      {"moe", "model.dropout.branch=1", "model.dropout.branch: expected a share from 0 to below 1, got 1"},
      {"dit", "model.dropout.attention=-0.1", "model.dropout.attention: expected a share from 0 to below 1"},
      {"dit", "model.drop_path=0.1",
       "model.drop_path: has no effect: it is used by model.family vit, and model.family is dit"},
      {"dit", "model.width=18", "model.width: expected a multiple of 4"},
      {"dit", "eval.samples=-1", "eval.samples: expected a number from 0"},
      {"dit", "eval.sampler_steps=0", "eval.sampler_steps: expected a number from 2 to 1000, got 0"},
      {"dit", "eval.sampler=euler", "eval.sampler: expected one of"},
      {"vit", "data.augment.smoothing=1", "data.augment.smoothing: expected a share"},
      {"vit", "data.augment.crop=middle", "data.augment.crop: expected one of none, shift, resized"},
  };
  for (const auto& [family, assignment, text] : all) {
    const std::string message = said(family, assignment);
    EXPECT_NE(message.find(text), std::string::npos) << family << " " << assignment << "\nsaid: " << message;
  }
  EXPECT_NO_THROW(tiny_family("dit", {"eval.guidance=2"}));
  try {
    tiny_family("dit", {"eval.guidance=2", "model.label_dropout=0"});
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "eval.guidance: expected 1 with model.label_dropout 0, got 2");
  }
}

TEST(RunConfig, ShippedRecipesAreValidAndCountTheirParameters) {
  const std::vector<std::filesystem::path> folders = {SIAMESE_CONFIG_FOLDER};
  int recipes = 0;
  for (const auto& name : config::list_configs(folders)) {
    const config::Value value = config::load(name, {}, folders);
    if (value.find("variants") != nullptr || name.starts_with("tasks/")) continue;
    const RunConfig config = read_config(value);
    EXPECT_GT(models::make_model(config.model, config.init, 0, at::kMeta)->parameters().count(), 0) << name;
    ++recipes;
  }
  EXPECT_GE(recipes, 8);
}

TEST(Config, MicroBatchesOfAFewHundredTokens) {
  const auto micro_batch = [](const std::string& width, const std::string& blocks, const std::string& batch) {
    return tiny_config({"model.width=" + width, "model.blocks=" + blocks, "model.context=256", "train.batch=" + batch})
        .train.micro_batch;
  };
  EXPECT_EQ(micro_batch("256", "6", "8"), 4);
  EXPECT_EQ(micro_batch("256", "24", "4"), 2);  // the depth counts too
  EXPECT_EQ(micro_batch("256", "6", "9"), 3);   // 4 does not divide it
  EXPECT_EQ(micro_batch("64", "6", "12"), 12);
  EXPECT_EQ(micro_batch("768", "12", "4"), 1);
}

// As nobody, whom the limit of processes binds; 2 more threads in each of 2 pools (OpenMP's and autograd's).
TEST(Engine, ThreadsThatTheSystemDoesNotAllowAreNamed) {
  EXPECT_TRUE(holds_as_nobody([] {
    allow_no_more_threads();
    EngineConfig engine;
    engine.threads = 3;
    try {
      apply_engine(engine);
    } catch (const SystemError& error) {
      const std::string said = error.what();
      return said.starts_with("engine.threads: 3 need ") && said.find("start 0 (ulimit -u 0") != std::string::npos &&
             said.ends_with("; engine.threads=1 needs none");
    }
    return false;
  }));
  EXPECT_TRUE(holds_as_nobody([] {
    allow_no_more_threads();
    EngineConfig engine;
    engine.threads = 1;
    apply_engine(engine);
    return true;
  }));
}

TEST(Engine, ASlowPrecisionIsSaidOnTheCpuThatIsSlow) {
  EngineConfig engine;
  EXPECT_EQ(precision_note(engine, false), "");
  engine.precision = ops::Precision::bfloat16;
  EXPECT_EQ(precision_note(engine, true), "");
  const std::string note = precision_note(engine, false);
  EXPECT_TRUE(note.starts_with("engine.precision: bfloat16: this CPU has no products of bfloat16")) << note;
  EXPECT_NE(note.find("0.9 to 1.1 times the time of engine.precision=float32"), std::string::npos) << note;
  EXPECT_EQ(precision_note(engine), precision_note(engine, kernels::has_bfloat16_products()));
  engine.device = "cuda";
  EXPECT_EQ(precision_note(engine, false), "");
}

}  // namespace
}  // namespace siamese::train

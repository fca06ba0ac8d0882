#include "siamese/train/residual_warmup.h"

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/thread_group.h"
#include "tests/train/tiny_run.h"

#include "siamese/data/mixture.h"
#include "siamese/eval/evaluate.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/trainer.h"
#include "siamese/train/upcycle.h"

namespace siamese::train {
namespace {

namespace fs = std::filesystem;
using Scales = std::vector<double>;

void expect_scales(ResidualWarmup schedule, int64_t steps, int64_t step, const Scales& wanted) {
  const Scales got = branch_scales(schedule, steps, static_cast<int64_t>(wanted.size()), step);
  ASSERT_EQ(got.size(), wanted.size()) << enum_text(schedule) << " at " << step;
  for (size_t l = 0; l < wanted.size(); ++l) {
    EXPECT_NEAR(got[l], wanted[l], 1e-15) << enum_text(schedule) << " at " << step << ", block " << l;
  }
}

// Four blocks of 25 steps each, and three in 10 steps: floor(10 / 3) = 3, then in two equal strides to 10: 3, 6.5, 10.
TEST(ResidualWarmup, SchedulesByHand) {
  using enum ResidualWarmup;
  expect_scales(linear, 100, 0, {0, 0, 0, 0});
  expect_scales(linear, 100, 10, {0.4, 0.2, 10.0 / 75, 0.1});
  expect_scales(linear, 100, 60, {1, 1, 0.8, 0.6});
  expect_scales(linear, 100, 99, {1, 1, 1, 0.99});
  expect_scales(linear, 10, 3, {1, 6.0 / 13, 0.3});
  expect_scales(linear, 10, 5, {1, 10.0 / 13, 0.5});
  expect_scales(linear, 7, 3, {3.0 / 7});
  expect_scales(equal, 100, 10, {0.1, 0.1, 0.1, 0.1});
  expect_scales(reverse, 100, 10, {0.1, 10.0 / 75, 0.2, 0.4});
  expect_scales(reverse, 10, 5, {0.5, 10.0 / 13, 1});
  expect_scales(sqrt, 100, 16, {0.8, std::sqrt(0.32), std::sqrt(16.0 / 75), 0.4});
  expect_scales(square, 100, 10, {0.16, 0.04, 100.0 / 5625, 0.01});
  expect_scales(square, 100, 50, {1, 1, 4.0 / 9, 0.25});
  expect_scales(stagewise, 100, 10, {0.4, 0, 0, 0});
  expect_scales(stagewise, 100, 60, {1, 1, 0.4, 0});
  expect_scales(stagewise, 10, 5, {1, 4.0 / 7, 0});
  expect_scales(stagewise_depth, 100, 10, {0.25 + 0.75 * 0.4, 0.25, 0.25, 0.25});
  expect_scales(stagewise_sqrt_depth, 100, 60, {1, 1, 0.5 + 0.5 * 0.4, 0.5});
  expect_scales(stagewise_sqrt_block, 100, 35,
                {1, std::sqrt(0.5) + (1 - std::sqrt(0.5)) * 0.4, std::sqrt(1.0 / 3), 0.5});
}

TEST(ResidualWarmup, FromItsEndOnThereIsNone) {
  for (const auto& entry : EnumText<ResidualWarmup>::names) {
    for (const int64_t step : {100, 101, 1000000}) EXPECT_EQ(branch_scales(entry.first, 100, 4, step), Scales());
    if (entry.first == ResidualWarmup::none) continue;
    EXPECT_LT(branch_scales(entry.first, 100, 4, 99).front() + branch_scales(entry.first, 100, 4, 99).back(), 2);
  }
  EXPECT_EQ(branch_scales(ResidualWarmup::none, 0, 4, 0), Scales());
}

TEST(ResidualWarmup, KeysOfAConfig) {
  const RunConfig usual = tiny_config({"train.residual_warmup=linear"});
  EXPECT_EQ(usual.train.residual_warmup_steps, 2000);
  EXPECT_EQ(branch_scales(usual, 500), (Scales{0.5, 0.25}));
  EXPECT_EQ(tiny_config().train.residual_warmup_steps, 0);
  testing::expect_error<UsageError>(
      [] {
        tiny_config({"train.residual_warmup=linear", "train.residual_warmup_steps=1"});
      },
      {"train.residual_warmup_steps", "each of the 2 blocks", "got 1"});
  testing::expect_error<UsageError>([] { tiny_config({"train.residual_warmup_steps=7"}); },
                                    {"train.residual_warmup_steps", "has no effect", "train.residual_warmup is none"});
  testing::expect_error<UsageError>([] { tiny_config({"train.residual_warmup=lineal"}); }, {"linear"});
}

// A run of any family whose warm-up ends with its tenth step.
RunConfig warming_config(const std::string& family, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.end(), {"train.residual_warmup=linear", "train.residual_warmup_steps=10"});
  return family == "lm" ? tiny_config(overrides) : tiny_family(family, overrides);
}

TEST(ResidualWarmup, EveryFamilyTrainsAndResumesExactlyInTheMiddle) {
  const TemporaryFolder folder("warmup_resume");
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    SCOPED_TRACE(family);
    const RunConfig config = warming_config(family, {"train.micro_batch=2"});
    start_run(config, folder / (family + "_whole"), false, "", {});
    for (const int step : {1, 6}) {
      const fs::path cut = folder / (family + "_cut" + std::to_string(step));
      ASSERT_EQ(start_run(config, cut, false, "", stop_after(step)).status, RunStatus::stopped);
      ASSERT_EQ(resume_run(cut, {}).status, RunStatus::finished);
      expect_same_runs(folder / (family + "_whole"), cut, 12);
    }
    start_run(warming_config(family, {"train.micro_batch=2", "engine.recompute=1"}), folder / (family + "_again"),
              false, "", {});
    EXPECT_EQ(io::read_file(folder / (family + "_again") / "step12" / "model.safetensors"),
              io::read_file(folder / (family + "_whole") / "step12" / "model.safetensors"));
  }
}

// With all factors 0, the first step changes no weight of a block; the second does.
TEST(ResidualWarmup, TheFirstStepTeachesTheEndsAlone) {
  Trainer trainer(warming_config("lm", {"optim.weight_decay=0", "model.residual=pre"}));
  const auto value = [&](const char* name) { return trainer.model().parameters().find(name)->value.detach().clone(); };
  const at::Tensor block = value("blocks.1.ffn.out.weight"), table = value("embedding.weight");
  trainer.step();
  testing::expect_same_bits(value("blocks.1.ffn.out.weight"), block, "a block's weight");
  EXPECT_FALSE(at::equal(value("embedding.weight"), table));
  trainer.step();
  EXPECT_FALSE(at::equal(value("blocks.1.ffn.out.weight"), block));
}

void replace_text(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = io::read_file(file);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << file;
  io::write_file_atomic(file, text.replace(at, from.size(), to));
}

// Past its end a run goes on as one that never had a warm-up would from the same weights.
TEST(ResidualWarmup, PastItsEndTheRunIsThePlainOne) {
  const TemporaryFolder folder("warmup_end");
  for (const char* const scheme : {"pre", "siamese", "hc", "sandwich"}) {
    SCOPED_TRACE(scheme);
    const RunConfig config = tiny_config(
        {std::string("model.residual=") + scheme, "train.residual_warmup=linear", "train.residual_warmup_steps=6"});
    const fs::path warm = folder / (std::string("warm_") + scheme), plain = folder / (std::string("plain_") + scheme);
    start_run(config, warm, false, "", stop_after(6));
    fs::copy(warm, plain, fs::copy_options::recursive);
    for (const fs::path& place : {plain, plain / "step6"}) {
      replace_text(place / "config.yaml", "residual_warmup: linear", "residual_warmup: none");
      replace_text(place / "config.yaml", "residual_warmup_steps: 6", "residual_warmup_steps: 0");
    }
    ASSERT_EQ(resume_run(warm, {}).status, RunStatus::finished);
    ASSERT_EQ(resume_run(plain, {}).status, RunStatus::finished);
    EXPECT_EQ(timeless_lines(warm / "metrics.jsonl"), timeless_lines(plain / "metrics.jsonl"));
    EXPECT_EQ(io::read_file(warm / "step12" / "model.safetensors"),
              io::read_file(plain / "step12" / "model.safetensors"));
  }
}

// In the loop and of the checkpoint afterwards: the factors of the step at which it was saved.
TEST(ResidualWarmup, EvaluationHasTheFactorsOfItsStep) {
  const TemporaryFolder folder("warmup_eval");
  for (const std::string family : {"lm", "vit", "dit"}) {
    SCOPED_TRACE(family);
    const RunConfig config = warming_config(family, {"train.checkpoint_every=5", "eval.averaged=false"});
    start_run(config, folder / family, false, "", stop_after(5));
    Trainer trainer(config, true);
    trainer.resume_from(folder / family / "step5");
    const LoadedModel loaded = load_model(folder / family / "step5");
    EXPECT_EQ(loaded.branch_scales, (Scales{1, 0.5}));
    const auto sets = data::open_held_out(config.data, sample_shape(config.model));
    const auto loss = [&](const models::Model& model) {
      return eval::evaluate({.model = model,
                             .data = config.data,
                             .held_out = *sets.front().batches,
                             .batch = config.train.batch,
                             .rows = config.train.micro_batch},
                            config.eval)
          .held_out.loss;
    };
    const double in_loop = trainer.evaluate().held_out.loss;
    EXPECT_EQ(in_loop, loss(*loaded.model));
    EXPECT_NE(in_loop, loss(trainer.model())) << "the plain model";
  }
}

// A rank takes the same factors at the same step.
TEST(ResidualWarmup, RanksAgreeWithOneProcess) {
  const RunConfig config = warming_config("lm", {"train.micro_batch=1"});
  Trainer alone(config);
  std::vector<double> wanted;
  for (int step = 0; step < 4; ++step) wanted.push_back(alone.step().loss);
  const double evaluated = alone.evaluate().held_out.loss;
  comm::ThreadGroup::run(2, [&](comm::Group& group) {
    Trainer trainer(config, false, &group);
    for (int step = 0; step < 4; ++step) {
      const double loss = trainer.step().loss;
      EXPECT_NEAR(loss, wanted[static_cast<size_t>(step)], 1e-6) << "rank " << group.rank() << " step " << step;
    }
    EXPECT_NEAR(trainer.evaluate().held_out.loss, evaluated, 1e-6);
  });
}

TEST(ResidualWarmup, WeightsInItsMiddleAreNoModelOfTheirOwn) {
  const TemporaryFolder folder("warmup_middle");
  const RunConfig config = warming_config("lm", {"model.residual=pre", "train.checkpoint_every=5"});
  start_run(config, folder / "run", false, "", {});
  const std::vector<std::string> words = {"step5", "residual warm-up", "train.residual_warmup linear, 10 steps",
                                          "from step 10 on"};
  testing::expect_error<DataError>([&] { check_warmed_up(folder / "run" / "step5"); }, words);
  testing::expect_error<DataError>([&] { upcycle(load_model(folder / "run" / "step5"), "siamese"); }, words);
  EXPECT_NO_THROW(check_warmed_up(folder / "run" / "step10"));
  const Upcycled made = upcycle(load_model(folder / "run" / "step10"), "siamese");
  EXPECT_EQ(made.config.train.residual_warmup, ResidualWarmup::none);
  save_weights(folder / "alone", config, *load_model(folder / "run" / "step10").model, false);
  EXPECT_EQ(load_model(folder / "alone").branch_scales, Scales());
}

}  // namespace
}  // namespace siamese::train

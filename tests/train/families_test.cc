// What every run promises, for moe, vit and dit: interruption, recomputation and threads change no bit, micro-batches
// nothing but rounding, and another run can start from the weights.
#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/models/registry.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace families_test {

namespace fs = std::filesystem;

TEST(Families, InterruptedAtAnyStepEqualsUninterrupted) {
  const TemporaryFolder folder("families_resume");
  bool skipped = false;
  for (const auto& family : other_families()) {
    SCOPED_TRACE(family);
    const RunConfig config = tiny_family(family, {"train.micro_batch=2", "train.skip_outliers=1e-9",
                                                  "train.skip_window=8", "train.keep_last=3", "train.keep_every=4"});
    const fs::path whole = folder / ("whole_" + family);
    start_run(config, whole, false, "", {});
    ASSERT_NE(io::read_file(whole / "step12" / "trainer.json").find("window"), std::string::npos);
    skipped |= io::read_file(whole / "metrics.jsonl").find("skip_z") != std::string::npos;
    ASSERT_TRUE(fs::exists(whole / "step12" / "ema.safetensors"));
    EXPECT_EQ(fs::exists(whole / "samples" / "step12.png"), family == "dit");
    for (const int step : {1, 5, 6, 11}) {
      const fs::path cut = folder / ("cut_" + family + std::to_string(step));
      ASSERT_EQ(start_run(config, cut, false, "", stop_after(step)).status, RunStatus::stopped);
      ASSERT_EQ(resume_run(cut, {}).status, RunStatus::finished);
      expect_same_runs(whole, cut, 12);
    }
  }
  EXPECT_TRUE(skipped) << "the spike guard had nothing to do in any family";
}

TEST(Families, InterruptedInBfloat16EqualsUninterrupted) {
  const TemporaryFolder folder("families_bfloat16");
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    SCOPED_TRACE(family);
    const std::vector<std::string> keys = {"engine.precision=bfloat16", "train.steps=6"};
    const RunConfig config = family == "lm" ? tiny_config(keys) : tiny_family(family, keys);
    const fs::path whole = folder / (family + "_whole");
    start_run(config, whole, false, "", {});
    for (const int step : {1, 4}) {
      const fs::path cut = folder / (family + "_cut" + std::to_string(step));
      ASSERT_EQ(start_run(config, cut, false, "", stop_after(step)).status, RunStatus::stopped);
      ASSERT_EQ(resume_run(cut, {}).status, RunStatus::finished);
      expect_same_runs(whole, cut, 6);
    }
  }
}

// Killed between checkpoints: the line and the picture of the evaluation at step 10 are made again.
TEST(Families, AfterAKillTheTailIsComputedAgain) {
  const TemporaryFolder folder("families_kill");
  for (const auto& family : other_families()) {
    SCOPED_TRACE(family);
    const fs::path whole = folder / ("whole_" + family), killed = folder / ("killed_" + family);
    start_run(tiny_family(family), whole, false, "", {});
    start_run(tiny_family(family), killed, false, "", stop_after(11));
    fs::remove_all(killed / "step11");
    fs::remove(killed / "samples" / "step10.png");
    io::write_file_atomic(killed / "latest", "step8\n");
    ASSERT_EQ(resume_run(killed, {}).status, RunStatus::finished);
    EXPECT_EQ(fs::exists(killed / "samples" / "step10.png"), family == "dit");
    expect_same_runs(whole, killed, 12);
  }
}

TEST(Families, RecomputedActivationsGiveTheSameBits) {
  const TemporaryFolder folder("families_recompute");
  for (const auto& family : other_families()) {
    SCOPED_TRACE(family);
    start_run(tiny_family(family), folder / (family + "0"), false, "", {});
    start_run(tiny_family(family, {"engine.recompute=1"}), folder / (family + "1"), false, "", {});
    expect_same_runs(folder / (family + "0"), folder / (family + "1"), 12);
  }
}

// Once small and odd, fused and plain, once large enough that work is shared between threads.
TEST(Families, AnyNumberOfThreadsGivesTheSameBits) {
  const TemporaryFolder folder("families_threads");
  const std::vector<std::vector<std::string>> sizes = {{"train.batch=5", "train.micro_batch=5", "engine.ops=auto"},
                                                       {"train.batch=7", "train.micro_batch=7", "engine.ops=plain"},
                                                       {"train.batch=16", "train.micro_batch=16", "model.width=64"}};
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    for (size_t size = 0; size < sizes.size(); ++size) {
      const auto run = [&](int threads) {
        return folder / (family + std::to_string(size) + "_" + std::to_string(threads));
      };
      for (const int threads : {1, 2, 3, 7}) {
        SCOPED_TRACE(run(threads));
        std::vector<std::string> all = {"train.steps=4", "train.checkpoint_every=0",
                                        "engine.threads=" + std::to_string(threads)};
        all.insert(all.end(), sizes[size].begin(), sizes[size].end());
        const bool text = family == "lm" || family == "moe";
        if (size == 2) all.push_back(text ? "model.context=96" : "model.image=32");
        start_run(family == "lm" ? tiny_config(all) : tiny_family(family, all), run(threads), false, "", {});
        expect_same_runs(run(1), run(threads), 4);
      }
    }
  }
}

// Muon, dropout everywhere, rates of kinds and frozen parameters, all at once: threads, recomputation and an
// interruption change no bit.
TEST(Families, WithMuonAndDropoutTheBitsAreTheSame) {
  const TemporaryFolder folder("families_muon");
  const std::vector<std::string> common = {"optim.name=muon",
                                           "optim.freeze=[embedding, 'blocks.0.ffn*']",
                                           "optim.lr_scale.norm=2",
                                           "model.dropout.embedding=0.1",
                                           "model.dropout.attention=0.2",
                                           "model.dropout.branch=0.1",
                                           "train.steps=4"};
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    SCOPED_TRACE(family);
    const auto config = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all = common;
      all.insert(all.end(), more.begin(), more.end());
      return family == "lm" ? tiny_config(all) : tiny_family(family, all);
    };
    const auto whole = folder / (family + "_whole");
    start_run(config({}), whole, false, "", {});
    for (const std::string other : {"engine.threads=2", "engine.threads=3", "engine.recompute=1"}) {
      SCOPED_TRACE(other);
      start_run(config({other}), folder / (family + other), false, "", {});
      expect_same_runs(whole, folder / (family + other), 4);
    }
    start_run(config({}), folder / (family + "_cut"), false, "", stop_after(3));
    ASSERT_EQ(resume_run(folder / (family + "_cut"), {}).status, RunStatus::finished);
    expect_same_runs(whole, folder / (family + "_cut"), 4);
  }
}

// The loss that balances experts is a mean over micro-batches of a product of means, so it is left out.
TEST(Families, MicroBatchesAddUpToTheBatch) {
  for (const auto& family : other_families()) {
    SCOPED_TRACE(family);
    std::vector<std::string> common = {"optim.lr=1e-3"};
    if (family == "moe") common.push_back("train.balance_loss=0");
    auto halved = common;
    halved.push_back("train.micro_batch=2");
    Trainer whole(tiny_family(family, common)), halves(tiny_family(family, halved));
    ASSERT_EQ(whole.config().train.micro_batch, 4);
    for (int step = 1; step <= 8; ++step) {
      const StepMetrics a = whole.step(), b = halves.step();
      EXPECT_NEAR(a.loss, b.loss, step == 1 ? 1e-6 : 1e-4) << "step " << step;
      EXPECT_NEAR(a.grad_norm, b.grad_norm, (step == 1 ? 1e-5 : 1e-3) * (1 + a.grad_norm)) << "step " << step;
      ASSERT_EQ(a.extra.size(), b.extra.size());
      for (size_t i = 0; i < a.extra.size(); ++i) {
        if (a.extra[i].first == "balance_loss") continue;
        EXPECT_NEAR(a.extra[i].second, b.extra[i].second, 1e-4) << a.extra[i].first << " step " << step;
      }
    }
  }
}

TEST(Families, InitFromStartsWithTheWeightsOfAnotherRun) {
  const TemporaryFolder folder("families_from");
  for (const auto& family : other_families()) {
    SCOPED_TRACE(family);
    const fs::path first = folder / family;
    start_run(tiny_family(family, {"train.steps=3"}), first, false, "", {});
    const Trainer trainer(tiny_family(family, {"train.seed=9", "init.from=" + first.string()}));
    const auto loaded = load_model(first);
    const auto& expected = loaded.model->parameters().list();
    const auto& got = trainer.model().parameters().list();
    ASSERT_EQ(expected.size(), got.size());
    for (size_t i = 0; i < got.size(); ++i) testing::expect_same_bits(got[i].value, expected[i].value, got[i].name);
    EXPECT_EQ(trainer.state().step, 0);
    // The average starts there too.
    Trainer saved(tiny_family(family, {"init.from=" + first.string()}));
    fs::create_directories(folder / (family + "_saved"));
    saved.save(folder / (family + "_saved"));
    const auto averaged = load_model(folder / (family + "_saved"), Weights::averaged);
    for (size_t i = 0; i < got.size(); ++i) {
      testing::expect_same_bits(averaged.model->parameters().list()[i].value, expected[i].value, got[i].name);
    }
    for (const auto& other : other_families()) {
      if (other == family) continue;
      EXPECT_THROW(Trainer(tiny_family(other, {"init.from=" + first.string()})), DataError) << other;
    }
  }
}

// Images of a set so small that it can be learnt by heart.
TEST(Families, LearnInAHundredSteps) {
  for (const auto& family : other_families()) {
    Trainer trainer(tiny_family(
        family, {"train.steps=100", "train.batch=16", "train.micro_batch=16", "optim.lr=1e-2",
                 family == "moe" ? "data.operations=+" : "data.limit=16", "data.augment.mixup=0",
                 "data.augment.cutmix=0", "data.augment.operations=0", "data.augment.erase=0", "model.drop_path=0"}));
    double first = 0, last = 0;
    for (int step = 0; step < 100; ++step) {
      const double loss = trainer.step().loss;
      if (step < 10) first += loss / 10;
      if (step >= 90) last += loss / 10;
    }
    EXPECT_LT(last, 0.9 * first) << family;
  }
}

// DeiT's rule: matrices decay, and nothing else: no bias, gain, shift, class token or position.
TEST(Families, MatricesDecayAndNothingElse) {
  const c10::NoGradGuard no_grad;
  const RunConfig config = tiny_family("vit", {"model.residual=siamese", "optim.weight_decay=0.5"});
  const auto model = models::make_model(config.model, config.init, 1);
  std::vector<at::Tensor> before;
  for (const auto& parameter : model->parameters().list()) {
    parameter.value.add_(1);  // a bias of zero could not be seen to decay
    parameter.value.mutable_grad() = at::zeros_like(parameter.value);
    before.push_back(parameter.value.detach().clone());
  }
  make_optimizer(config.optim, model->parameters())->step(0.1, 0);
  int matrices = 0;
  bool class_token = false, positions = false;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [name, kind, value, rows] = model->parameters().list()[i];
    const bool matrix = value.dim() == 2 && name != "positions.weight";
    testing::expect_relative(value, matrix ? before[i] * (1 - 0.1 * 0.5) : before[i], 1e-6, name);
    matrices += matrix ? 1 : 0;
    class_token |= name == "class_token";
    positions |= name == "positions.weight";
  }
  EXPECT_TRUE(class_token && positions);
  EXPECT_EQ(matrices, 2 + 2 * 4);  // patch, head; qkv, out, in, out of each block
}

}  // namespace families_test
}  // namespace siamese::train

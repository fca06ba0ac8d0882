#include "siamese/train/average.h"

#include <cmath>

#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/eval/held_out.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace average_test {

std::vector<at::Tensor> values_of(const models::Model& model) {
  std::vector<at::Tensor> values;
  for (const auto& parameter : model.parameters().list()) values.push_back(parameter.value.detach().clone());
  return values;
}

TEST(WeightAverage, IsItsRecursion) {
  const TemporaryFolder folder("average_recursion");
  std::filesystem::create_directories(folder / "run");
  Trainer trainer(tiny_family("vit"));
  std::vector<at::Tensor> average;
  for (const auto& value : values_of(trainer.model())) average.push_back(value.to(at::kDouble));
  for (int step = 0; step < 5; ++step) {
    trainer.step();
    const auto values = values_of(trainer.model());
    for (size_t i = 0; i < values.size(); ++i) average[i] = 0.9 * average[i] + 0.1 * values[i].to(at::kDouble);
  }
  trainer.save(folder / "run");
  const auto loaded = load_model(folder / "run", Weights::averaged);
  const auto kept = values_of(*loaded.model), trained = values_of(trainer.model());
  double apart = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    testing::expect_relative(kept[i], average[i], 1e-6, loaded.model->parameters().list()[i].name);
    apart = std::max(apart, testing::largest_difference(kept[i], trained[i]));
  }
  EXPECT_GT(apart, 1e-3);
}

TEST(WeightAverage, ASkippedStepLeavesItAlone) {
  const TemporaryFolder folder("average_skip");
  std::filesystem::create_directories(folder / "run");
  Trainer trainer(tiny_family("dit"));
  trainer.step();
  const auto before = io::read_file(trainer.save(folder / "run") / "ema.safetensors");
  trainer.step();
  const auto moved = io::read_file(trainer.save(folder / "run") / "ema.safetensors");
  EXPECT_NE(before, moved);
  trainer.model().parameters().list().front().value.detach().fill_(INFINITY);
  EXPECT_TRUE(trainer.step().skipped);
  EXPECT_EQ(io::read_file(trainer.save(folder / "run") / "ema.safetensors"), moved);
}

TEST(WeightAverage, IsWhatIsEvaluatedAndThenPutAway) {
  const TemporaryFolder folder("average_eval");
  std::filesystem::create_directories(folder / "run");
  Trainer trainer(tiny_family("dit", {"optim.lr=1e-2"}));
  for (int step = 0; step < 6; ++step) trainer.step();
  const auto before = values_of(trainer.model());
  const auto file = trainer.save(folder / "run") / "ema.safetensors";
  const std::string average = io::read_file(file);
  const auto evaluation = trainer.evaluate();
  const auto after = values_of(trainer.model());
  for (size_t i = 0; i < before.size(); ++i) {
    testing::expect_same_bits(after[i], before[i], trainer.model().parameters().list()[i].name);
  }
  trainer.save(folder / "run");
  EXPECT_EQ(io::read_file(file), average);
  const RunConfig& config = trainer.config();
  const auto test = data::open_batches(config.data, data::Split::test, sample_shape(config.model), 0);
  const auto loss_of = [&](Weights weights) {
    return eval::held_out_loss(*load_model(folder / "run", weights).model, *test, config.train.micro_batch,
                               config.train.batch)
        .loss;
  };
  EXPECT_EQ(evaluation.held_out.loss, loss_of(Weights::averaged));
  EXPECT_NE(evaluation.held_out.loss, loss_of(Weights::trained));
}

TEST(WeightAverage, ARunThatKeptNoneHasNone) {
  const TemporaryFolder folder("average_none");
  start_run(tiny_family("vit", {"train.ema=0", "train.steps=1"}), folder / "run", false, "", {});
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "step1" / "ema.safetensors"));
  try {
    load_model(folder / "run", Weights::averaged);
    FAIL() << "accepted";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("ema.safetensors: missing"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("train.ema"), std::string::npos) << error.what();
  }
}

// What cannot be gone on with is said, not begun anew.
TEST(WeightAverage, ALostOneStopsTheResume) {
  const TemporaryFolder folder("average_lost");
  start_run(tiny_family("vit"), folder / "run", false, "", stop_after(3));
  std::filesystem::remove(folder / "run" / "step3" / "ema.safetensors");
  EXPECT_THROW(resume_run(folder / "run", {}), DataError);
}

}  // namespace average_test
}  // namespace siamese::train

// Weights divided among ranks (engine.shard: optimizer with engine.precision: bfloat16): the numbers of a run whose
// ranks hold them whole, in files that any number of ranks reads, and a rank that has no more of them than it should.
#include "siamese/train/weight_parts.h"

#include <algorithm>
#include <functional>

#include "tests/support/errors.h"
#include "tests/support/schemes.h"
#include "tests/support/tensors.h"
#include "tests/support/thread_group.h"
#include "tests/train/tiny_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/models/parts.h"
#include "siamese/models/registry.h"
#include "siamese/plan/sharding.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/needs.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace weight_parts_test {

namespace fs = std::filesystem;
using siamese::testing::expect_error;
using Overrides = std::vector<std::string>;

Overrides with(Overrides some, const Overrides& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

// Without a clip: its norm is added up in another order where the optimizer is divided.
RunConfig config_of(const std::string& family, const std::string& shard, const Overrides& more = {}) {
  const Overrides overrides = with({"engine.precision=bfloat16", "engine.shard=" + shard, "optim.clip=0",
                                    "train.micro_batch=1", "train.record_every=3", "train.steps=6"},
                                   more);
  return family == "lm" ? tiny_config(overrides) : tiny_family(family, overrides);
}

struct Course {
  std::vector<double> losses;  // of the steps, and held-out
  fs::path checkpoint;
};

// Some steps of so many ranks, an evaluation in between; what rank 0 says of them. All save at the end.
Course train(const RunConfig& config, int ranks, const fs::path& run, const fs::path& resumed = {}) {
  at::set_num_threads(1);
  const ops::PrecisionGuard precision(config.engine.precision);
  fs::create_directories(run);
  Course course;
  comm::ThreadGroup::run(ranks, [&](comm::Group& group) {
    Trainer trainer(config, !resumed.empty(), &group);
    if (!resumed.empty()) trainer.resume_from(resumed);
    std::vector<double> losses;
    while (!trainer.finished()) {
      losses.push_back(trainer.step().loss);
      if (trainer.state().step == 2) losses.push_back(trainer.evaluate().held_out.loss);
    }
    const auto& list = trainer.model().parameters().list();
    const bool divided =
        std::any_of(list.begin(), list.end(), [](const auto& one) { return one.value.storage().nbytes() == 0; });
    EXPECT_EQ(divided, ranks > 1 && config.engine.shard == Shard::optimizer);
    if (!group.leads()) return trainer.help_save();
    course = {losses, trainer.save_together(run)};
  });
  return course;
}

std::vector<at::Tensor> stored(const fs::path& checkpoint, Weights which) {
  const LoadedModel loaded = load_model(checkpoint, which);
  std::vector<at::Tensor> values;
  for (const auto& parameter : loaded.model->parameters().list()) values.push_back(parameter.value.detach());
  return values;
}

void expect_same_weights(const fs::path& a, const fs::path& b) {
  for (const Weights which : {Weights::trained, Weights::averaged}) {
    if (which == Weights::averaged && !keeps_average(a)) continue;
    const auto expected = stored(a, which), got = stored(b, which);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(at::equal(got[i], expected[i])) << (which == Weights::averaged ? "average " : "weight ") << i;
    }
  }
}

void expect_same_bits_as_whole(const std::string& family, int ranks, const Overrides& more = {}) {
  const TemporaryFolder folder("weight_parts");
  const Course whole = train(config_of(family, "none", more), ranks, folder / "whole");
  const Course divided = train(config_of(family, "optimizer", more), ranks, folder / "divided");
  EXPECT_EQ(divided.losses, whole.losses);
  expect_same_weights(whole.checkpoint, divided.checkpoint);
}

class DividedWeights : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, DividedWeights, ::testing::Values("lm", "moe", "vit", "dit"));

// The families beside lm keep averages, and dit evaluates them.
TEST_P(DividedWeights, AreTheSameBits) {
  for (const char* const recompute : {"0", "1"}) {
    SCOPED_TRACE(std::string("recompute ") + recompute);
    expect_same_bits_as_whole(GetParam(), 2, {std::string("engine.recompute=") + recompute, "model.blocks=3"});
  }
  expect_same_bits_as_whole(GetParam(), 3, {"optim.name=muon"});
}

TEST(WeightParts, SameBitsWithAveragesFrozenPartsAndAHead) {
  expect_same_bits_as_whole("lm", 2, {"train.ema=0.9", "eval.averaged=true", "model.tied=false"});
  expect_same_bits_as_whole("lm", 3, {"optim.freeze=[embedding, blocks.0.*]", "model.blocks=3", "train.ema=0.8"});
  expect_same_bits_as_whole("moe", 3, {"optim.freeze=[blocks.1.attention.*]", "optim.name=muon"});
  expect_same_bits_as_whole("lm", 2, {"train.residual_warmup=linear", "train.residual_warmup_steps=4"});
}

// A scheme reads what it owns, and no matrix of a branch.
TEST(WeightParts, EveryScheme) {
  for (const auto& scheme : testing::causal_schemes()) {
    SCOPED_TRACE(scheme);
    expect_same_bits_as_whole("lm", 2, {"model.residual=" + scheme, "train.steps=2", "train.record_every=2"});
  }
}

TEST(WeightParts, AnyNumberOfRanksGoesOn) {
  for (const char* const optimizer : {"adamw", "muon"}) {
    SCOPED_TRACE(optimizer);
    const TemporaryFolder folder("weight_parts_resume");
    const auto config = [&](const char* steps) {
      return config_of("moe", "optimizer",
                       {std::string("optim.name=") + optimizer, std::string("train.steps=") + steps,
                        "optim.schedule.kind=constant", "optim.schedule.warmup=0"});
    };
    const Course whole = train(config("6"), 3, folder / "whole");
    const Course cut = train(config("3"), 3, folder / "cut");
    expect_same_weights(whole.checkpoint, train(config("6"), 3, folder / "same", cut.checkpoint).checkpoint);
    const auto expect_near = [&](const Course& course) {
      for (size_t back = 1; back <= 3; ++back) {
        EXPECT_NEAR(course.losses.end()[-static_cast<std::ptrdiff_t>(back)],
                    whole.losses.end()[-static_cast<std::ptrdiff_t>(back)], 2e-2);
      }
    };
    for (const int ranks : {1, 2, 4}) {
      SCOPED_TRACE(ranks);
      expect_near(train(config("6"), ranks, folder / "other", cut.checkpoint));
    }
    const Course alone = train(config("3"), 1, folder / "alone");
    expect_near(train(config("6"), 3, folder / "more", alone.checkpoint));
  }
}

// With the moments of a run of whole weights: the same step as that run's next one.
TEST(WeightParts, ForkOfAnotherRun) {
  const TemporaryFolder folder("weight_parts_fork");
  const Overrides flat = {"optim.schedule.kind=constant", "optim.schedule.warmup=0", "train.ema=0.9"};
  const Course first = train(config_of("lm", "none", with(flat, {"train.steps=3"})), 2, folder / "first");
  const Overrides fork = with(flat, {"train.steps=1", "init.from=" + first.checkpoint.string(), "init.optimizer=true"});
  const Course whole = train(config_of("lm", "none", fork), 2, folder / "whole");
  const Course divided = train(config_of("lm", "optimizer", fork), 2, folder / "divided");
  EXPECT_EQ(divided.losses, whole.losses);
  expect_same_weights(whole.checkpoint, divided.checkpoint);
}

TEST(WeightParts, SavedInTheBackground) {
  const TemporaryFolder folder("weight_parts_background");
  const RunConfig config = config_of("moe", "optimizer", {"train.steps=4", "optim.schedule.kind=constant"});
  const Course between = train(config, 2, folder / "between");
  fs::create_directories(folder / "meanwhile");
  const ops::PrecisionGuard precision(config.engine.precision);
  comm::ThreadGroup::run(2, [&](comm::Group& group) {
    Trainer trainer(config, false, &group);
    for (int i = 0; i < 4; ++i) trainer.step();
    const auto save = group.leads() ? trainer.begin_save(folder / "meanwhile") : trainer.help_begin_save();
    trainer.step();  // what is written lies where these gradients are
    save->join_parts();
    if (group.leads()) save->finish();
  });
  expect_same_weights(between.checkpoint, folder / "meanwhile/step4");
}

// Of a model alone, as a rank has it.
struct Rank {
  Rank(const RunConfig& config, comm::Group& group)
      : model(models::make_model(config.model, config.init, 1)),
        gradients(model->parameters()),
        division(gradients, model->blocks_of_parameters(), group.rank(), group.size(),
                 config.optim.name != OptimizerName::muon),
        weights(group, model->parameters(), gradients, division, divides_operands(config.engine)) {}

  const std::vector<nn::Parameter>& list() const { return model->parameters().list(); }

  std::unique_ptr<models::Model> model;
  nn::GradientBuffer gradients;
  Division division;
  WeightParts weights;
};

TEST(WeightParts, WhoReadsADividedWeightIsTold) {
  const RunConfig config = config_of("moe", "optimizer");
  comm::ThreadGroup::run(2, [&](comm::Group& group) {
    const Rank rank(config, group);
    int divided = 0;
    for (size_t i = 0; i < rank.list().size(); ++i) {
      const auto& [name, kind, value, matrices] = rank.list()[i];
      if (!rank.weights.is_divided(i)) {
        EXPECT_EQ(value.storage().nbytes(), value.nbytes()) << name;
        continue;
      }
      ++divided;
      EXPECT_EQ(value.storage().nbytes(), 0U) << name;
      const std::vector<std::function<void()>> readers = {
          [&] { value.sum(); },
          [&] { value.detach().clone(); },
          [&] { value.detach().to(at::kBFloat16); },
          [&] { value.detach().view({-1}).copy_(at::zeros({value.numel()})); },
          [&] { value.const_data_ptr<float>(); },
          [&] { value.data_ptr(); }};
      for (size_t reader = 0; reader < readers.size(); ++reader) {
        try {
          readers[reader]();
          ADD_FAILURE() << name << ": reader " << reader << " was not told";
        } catch (const c10::Error& error) {
          EXPECT_NE(std::string(error.what()).find(name + ": its float32 numbers are divided among the ranks"),
                    std::string::npos)
              << error.what();
        }
      }
      EXPECT_THROW(value.transpose(-1, -2).contiguous(), c10::Error) << name;
    }
    EXPECT_EQ(divided, 2 * 6) << "qkv and out, in and out of experts and of what they share, of each block";
  });
}

// The bytes that are there, counted, against the plan.
TEST(WeightParts, ARankHoldsWhatThePlanSays) {
  for (const std::string family : {"lm", "moe", "vit", "dit"}) {
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(family + " of " + std::to_string(ranks));
      const Overrides larger = {"model.width=64", "train.ema=0", "eval.averaged=false"};
      const RunConfig config = config_of(family, "optimizer", larger);
      const Needs needs = needs_of(config);
      EXPECT_GT(needs.run.read_rounded, 0.5 * needs.run.weights);
      const double rounded_anew = needs.run.rounded_weight_bytes - 2 * needs.run.read_rounded;  // in each step
      EXPECT_GE(rounded_anew, 0);
      comm::ThreadGroup::run(ranks, [&](comm::Group& group) {
        const Rank rank(config, group);
        double bytes = 0;
        for (size_t i = 0; i < rank.list().size(); ++i) {
          bytes += static_cast<double>(rank.list()[i].value.storage().nbytes());
          if (rank.weights.is_divided(i)) bytes += static_cast<double>(rank.weights.own(i).nbytes());
        }
        bytes += static_cast<double>(rank.weights.rounded().nbytes());
        const double planned = plan::device_bytes(needs.run, plan::Sharding::optimizer, ranks, 0).weights;
        EXPECT_NEAR(bytes, planned - rounded_anew, 0.05 * planned);
        EXPECT_LT(bytes, 0.85 * plan::device_bytes(needs.run, plan::Sharding::none, ranks, 0).weights);
      });
    }
  }
}

// Products of the plain expressions read the weights, and so do those of float32.
TEST(WeightParts, NothingIsDividedWhereFloatsAreRead) {
  EXPECT_TRUE(divides_operands(config_of("lm", "optimizer").engine));
  for (const char* const other : {"engine.precision=float32", "engine.ops=plain"}) {
    const RunConfig config = config_of("moe", "optimizer", {other});
    EXPECT_FALSE(divides_operands(config.engine)) << other;
    EXPECT_EQ(needs_of(config).run.read_rounded, 0) << other;
    comm::ThreadGroup::run(2, [&](comm::Group& group) {
      const Rank rank(config, group);
      EXPECT_FALSE(rank.weights.any_is_divided());
    });
  }
}

// The rows that are exchanged hold every element once, on the rank that updates it.
TEST(WeightParts, RowsThatAreMovedTogetherKeepTheirRanks) {
  for (const char* const optimizer : {"adamw", "muon"}) {
    const RunConfig config = config_of("dit", "optimizer", {std::string("optim.name=") + optimizer});
    const auto model = models::make_model(config.model, config.init, 1);
    const nn::GradientBuffer gradients(model->parameters());
    const auto& list = model->parameters().list();
    std::vector<bool> chosen;
    for (const auto& parameter : list) chosen.push_back(models::is_operand_alone(parameter));
    for (const int ranks : {2, 3, 5}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const Division division(gradients, model->blocks_of_parameters(), rank, ranks,
                                config.optim.name != OptimizerName::muon);
        const ShorterRow row(model->parameters(), gradients, division, chosen, 32);
        std::vector<bool> mine(static_cast<size_t>(row.size));
        for (const auto& cuts : row.parts) {
          EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
          for (int64_t at = cuts[static_cast<size_t>(rank)]; at < cuts[static_cast<size_t>(rank) + 1]; ++at) {
            EXPECT_FALSE(mine[static_cast<size_t>(at)]);
            mine[static_cast<size_t>(at)] = true;
          }
        }
        for (size_t i = 0; i < list.size(); ++i) {
          if (!chosen[i]) continue;
          EXPECT_EQ(row.begins[i] % 32, 0);
          const Piece piece = division.piece_of(i, list[i].value.numel());
          for (int64_t at = 0; at < list[i].value.numel(); ++at) {
            ASSERT_EQ(mine[static_cast<size_t>(row.begins[i] + at)], at >= piece.begin && at < piece.end)
                << list[i].name << " " << at;
          }
        }
      }
    }
  }
}

}  // namespace weight_parts_test
}  // namespace siamese::train

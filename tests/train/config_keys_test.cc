#include "siamese/train/config_keys.h"

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/train/trainer_state.h"

namespace siamese::train {
namespace config_keys_test {

std::string said(const std::vector<std::string>& edits) {
  try {
    return check_edits(tiny_config(edits), tiny_config(), {}, "run", "run/step8");
  } catch (const DataError& error) {
    return std::string("refused: ") + error.what();
  }
}

TEST(ConfigKeys, WhatChangesNoStepMayBeEdited) {
  EXPECT_EQ(said({}), "");
  for (const char* const edit : {"train.eval_every=1", "train.checkpoint_every=1", "train.record_every=1",
                                 "train.keep_last=1", "train.max_hours=3", "train.max_skips=1", "eval.held_out=2",
                                 "eval.problems=1", "engine.threads=2", "engine.recompute=1", "engine.ops=plain"}) {
    const std::string text = edit, key = text.substr(0, text.find('='));
    EXPECT_EQ(said({edit}).find("run/config.yaml: edited since step8 was saved: " + key + ": was "), 0U)
        << said({edit});
    EXPECT_TRUE(said({edit}).ends_with(", is " + text.substr(key.size() + 1))) << said({edit});
  }
}

// Lines of a record that say eval.batches are about the runs that now say eval.held_out, where both ask the same
// samples.
TEST(ConfigKeys, TwoWaysToAskTheSameSamplesAreOneRun) {
  const auto same = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return result_config(tiny_config(a)) == result_config(tiny_config(b));
  };
  EXPECT_TRUE(same({"eval.batches=3"}, {"eval.held_out=12"}));  // of train.batch 4
  EXPECT_FALSE(same({"eval.batches=3"}, {"eval.held_out=13"}));
  // A text has an end: the first windows are others than those spread over it.
  const std::vector<std::string> text{"data.source=text", "data.train=[a.txt]"};
  const auto of_text = [&](std::vector<std::string> edits) {
    edits.insert(edits.begin(), text.begin(), text.end());
    return edits;
  };
  EXPECT_FALSE(same(of_text({"eval.batches=3"}), of_text({"eval.held_out=12"})));
}

TEST(ConfigKeys, EverythingElseMayNot) {
  for (const auto& [key, text] : config::flatten(config::print(tiny_config()))) {
    const bool of_model = key.starts_with("model.") || key.starts_with("data.") || key.starts_with("optim.") ||
                          key.starts_with("init.") || key == "train.seed" || key == "train.batch" ||
                          key == "train.micro_batch" || key == "train.ema" || key == "train.skip_outliers" ||
                          key == "train.skip_window" || key.starts_with("train.residual_warmup") ||
                          key.ends_with("_loss") || key == "engine.precision";
    EXPECT_EQ(may_be_edited(key), !of_model) << key;
    EXPECT_TRUE(decides_result(key) || may_be_edited(key)) << key;
  }
  EXPECT_EQ(said({"optim.lr=0.5"}),
            "refused: run/config.yaml: was changed since step8 was saved: optim.lr: 0.5, and the checkpoint says "
            "0.001: put it back to go on with the run, or make the same change in run/step8/config.yaml if it is "
            "meant");
  EXPECT_NE(said({"optim.lr=0.5", "optim.eps=1", "optim.clip=2", "train.seed=7"}).find("; and 1 more: put it back"),
            std::string::npos);
}

TEST(ConfigKeys, AnotherEndIsSaidWhenTheScheduleFollowsIt) {
  EXPECT_NE(said({"train.steps=24"}).find("train.steps: was 12, is 24; the cosine schedule"), std::string::npos);
  const RunConfig now = tiny_config({"train.steps=24", "optim.schedule.kind=constant"});
  EXPECT_EQ(check_edits(now, tiny_config({"optim.schedule.kind=constant"}), {}, "run", "run/step8"),
            "run/config.yaml: edited since step8 was saved: train.steps: was 12, is 24");
}

// The state is a third witness: who was changed, the run's config or the checkpoint's, or both because it is meant.
TEST(ConfigKeys, TheStateTellsWhichConfigWasChanged) {
  const RunConfig good = tiny_config(), other = tiny_config({"optim.lr=0.5"});
  TrainerState state;
  state.config = fixed_config(good);
  const auto outcome = [&](const RunConfig& now, const RunConfig& then) {
    try {
      return check_edits(now, then, state, "run", "run/step8");
    } catch (const DataError& error) {
      return std::string("refused: ") + error.what();
    }
  };
  EXPECT_EQ(outcome(good, good), "");
  EXPECT_EQ(outcome(other, good).find("refused: run/config.yaml: was changed since step8"), 0U);
  EXPECT_EQ(outcome(good, other),
            "refused: run/step8/config.yaml: was changed since the checkpoint was saved: optim.lr: was 0.001, is "
            "0.5: put it back");
  EXPECT_EQ(outcome(other, other), "run/config.yaml: edited since step8 was saved: optim.lr: was 0.001, is 0.5");
}

// Data may have moved once what they hold is known.
TEST(ConfigKeys, ThePlaceOfTheDataMayBeEdited) {
  const RunConfig there = tiny_config({"data.source=text", "data.train=there"});
  const RunConfig here = tiny_config({"data.source=text", "data.train=here"});
  TrainerState state;
  EXPECT_THROW(check_edits(here, there, state, "run", "run/step8"), DataError);
  state.data.train.push_back({"there/a.txt", {}});
  EXPECT_EQ(check_edits(here, there, state, "run", "run/step8"),
            "run/config.yaml: edited since step8 was saved: data.train: was [there], is [here]");
}

TEST(ConfigKeys, LimitsDecideNoResult) {
  EXPECT_EQ(
      result_config(tiny_config({"train.max_hours=3", "train.keep_last=2", "train.keep_every=9", "engine.threads=2"})),
      result_config(tiny_config()));
  RunConfig old = tiny_config();  // of a version that accepted what it did not use
  old.model.experts = 4;
  old.data.train = {"photos"};
  EXPECT_EQ(result_config(old), result_config(tiny_config()));
  EXPECT_NE(result_config(tiny_config({"train.skip_outliers=6"})), result_config(tiny_config()));
}

}  // namespace config_keys_test
}  // namespace siamese::train

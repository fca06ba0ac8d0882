#include "siamese/train/config_keys.h"

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"

namespace siamese::train {
namespace config_keys_test {

std::string said(const std::vector<std::string>& edits) {
  try {
    return check_edits(tiny_config(edits), tiny_config(), "run", "run/step8");
  } catch (const DataError& error) {
    return std::string("refused: ") + error.what();
  }
}

TEST(ConfigKeys, WhatChangesNoStepMayBeEdited) {
  EXPECT_EQ(said({}), "");
  for (const char* const edit :
       {"train.eval_every=1", "train.checkpoint_every=1", "train.record_every=1", "train.keep_last=1",
        "train.keep_every=5", "train.max_hours=3", "train.max_skips=1", "eval.batches=2", "eval.problems=1",
        "engine.threads=2", "engine.recompute=1", "engine.ops=plain"}) {
    EXPECT_EQ(said({edit}), "") << edit;
  }
}

TEST(ConfigKeys, EverythingElseMayNot) {
  for (const auto& [key, text] : config::flatten(config::print(tiny_config()))) {
    const bool of_model = key.starts_with("model.") || key.starts_with("data.") || key.starts_with("optim.") ||
                          key.starts_with("init.") || key == "train.seed" || key == "train.batch" ||
                          key == "train.micro_batch" || key == "train.ema" || key == "train.skip_outliers" ||
                          key == "train.skip_window" || key.ends_with("_loss");
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
  EXPECT_NE(said({"train.steps=24"}).find("train.steps was 12 and is 24 now: the cosine schedule"), std::string::npos);
  const RunConfig now = tiny_config({"train.steps=24", "optim.schedule.kind=constant"});
  EXPECT_EQ(check_edits(now, tiny_config({"optim.schedule.kind=constant"}), "run", "run/step8"), "");
}

TEST(ConfigKeys, LimitsDecideNoResult) {
  EXPECT_EQ(
      result_config(tiny_config({"train.max_hours=3", "train.keep_last=2", "train.keep_every=9", "engine.threads=2"})),
      result_config(tiny_config()));
  EXPECT_NE(result_config(tiny_config({"train.skip_outliers=6"})), result_config(tiny_config()));
}

}  // namespace config_keys_test
}  // namespace siamese::train

// Every key against every family and source: one that does nothing there is refused, not ignored.
#include <algorithm>
#include <set>
#include <sstream>

#include "tests/train/tiny_run.h"
#include <gtest/gtest.h>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/trainer_state.h"

namespace siamese::train {
namespace use_test {

struct Case {
  const char* family;
  const char* source;
};

const std::vector<Case> kCases = {{"lm", "arithmetic"},  {"lm", "text"},     {"lm", "tokens"},   {"lm", "random"},
                                  {"moe", "arithmetic"}, {"moe", "random"},  {"vit", "idx"},     {"vit", "shapes"},
                                  {"vit", "cifar"},      {"vit", "folder"},  {"vit", "latents"}, {"vit", "random"},
                                  {"dit", "shapes"},     {"dit", "latents"}, {"dit", "random"}};

bool sees_images(const Case& place) { return place.family == std::string("vit") || place.family == std::string("dit"); }

config::Value recipe(const Case& place, const std::vector<std::string>& more) {
  const std::string source = place.source;
  std::vector<std::string> lines = {"model.family=" + std::string(place.family), "data.source=" + source,
                                    "model.width=16", "model.heads=2", "train.batch=4"};
  if (source != "arithmetic" && source != "shapes" && source != "random") lines.push_back("data.train=somewhere");
  if (!sees_images(place) && (source == "tokens" || source == "random")) lines.push_back("model.vocab=64");
  if (sees_images(place) && source != "shapes") lines.insert(lines.end(), {"model.channels=3", "model.classes=20"});
  lines.insert(lines.end(), more.begin(), more.end());
  return tree_of(lines, config::kFileLayer);
}

std::string said_of(const Case& place, const std::vector<std::string>& more, const std::string& assignment) {
  config::Value value = recipe(place, more);
  config::apply_override(value, assignment);
  try {
    read_config(value);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

struct Key {
  const char* path;
  const char* value;                   // not its default
  const char* where = "";              // families, sources or family+source that use it; "" = all
  std::vector<std::string> with = {};  // what has to be on beside it
};

const char* const kFiles = "text tokens idx cifar folder latents";
const char* const kPixels = "shapes idx cifar folder";
const char* const kMixed = "vit+shapes vit+idx vit+cifar vit+folder vit+random";  // a dit refuses them
const char* const kRepeated = "shapes idx cifar folder vit+random dit+random";

const std::vector<Key>& table() {
  static const std::vector<Key> keys = {
      {"model.family", ""},  // the two that decide
      {"data.source", ""},
      {"model.residual", "pre"},
      {"model.width", "32"},
      {"model.blocks", "2"},
      {"model.heads", "1"},
      {"model.kv_heads", "1"},
      {"model.ffn", "gelu"},
      {"model.ffn_width", "48"},
      {"model.vocab", "300", "lm moe"},
      {"model.tied", "true", "lm moe"},  // of images it is false
      {"model.context", "40", "lm moe"},
      {"model.window", "8", "lm moe"},
      {"model.window_pattern", "SF", "lm moe", {"model.window=8"}},
      {"model.positions", "learned", "lm moe vit"},
      {"model.rope_theta", "500", "lm moe"},
      {"model.rope_scaling", "llama3(factor=8, context=8192)", "lm moe"},
      {"model.rope_scaling_layers", "full", "lm moe", {"model.rope_scaling=yarn"}},
      {"model.bias", "true", "lm vit dit"},
      {"model.qkv_bias", "true"},
      {"model.norm", "layer"},
      {"model.norm_eps", "1e-3"},
      {"model.norm_alpha", "0.3", "", {"model.norm=dyt"}},
      {"model.attention_norm", "qk"},
      {"model.value_residual", "half"},
      {"model.depth_attention_stride", "2"},
      {"model.depth_attention_recent", "1", "", {"model.depth_attention_stride=2"}},
      {"model.experts", "4", "moe"},
      {"model.experts_per_token", "3", "moe"},
      {"model.shared_width", "8", "moe"},
      {"model.renormalise", "true", "moe"},
      {"model.image", "16", "vit dit"},
      {"model.patch", "8", "vit dit"},
      {"model.channels", "1", "vit dit"},
      {"model.classes", "30", "vit dit"},
      {"model.dropout.embedding", "0.2"},
      {"model.dropout.attention", "0.2"},
      {"model.dropout.branch", "0.2"},
      {"model.drop_path", "0.2", "vit"},
      {"model.label_dropout", "0.2", "dit"},
      {"model.learn_sigma", "false", "dit"},
      {"init.rule", "normal"},
      {"init.std", "0.1"},
      {"init.cut", "2"},
      {"init.from", "a/run"},
      {"init.optimizer", "true", "", {"init.from=a/run"}},
      {"data.train", "elsewhere", kFiles},
      {"data.val", "elsewhere", kFiles},
      {"data.mix", "[a=1]", "text tokens", {"data.train=[a=somewhere]"}},
      {"data.val_fraction", "0.2", "text tokens folder latents"},
      {"data.format", "npy", "tokens"},
      {"data.pack", "documents", "tokens"},
      {"data.tokenizer", "t.json", "tokens"},
      {"data.operations", "+", "arithmetic"},
      {"data.digits", "2", "arithmetic"},
      {"data.test_fraction", "0.3", "arithmetic shapes"},
      {"data.loss", "all", "arithmetic"},
      {"data.reverse", "true", "arithmetic"},
      {"data.limit", "9", "vit dit"},
      {"data.normalize", "imagenet", "vit+shapes vit+idx vit+cifar vit+folder"},
      {"data.augment.crop", "shift", kPixels},
      {"data.augment.flip", "true", kPixels},
      {"data.augment.erase", "0.5", "vit+shapes vit+idx vit+cifar vit+folder"},
      {"data.augment.operations", "2", kPixels},
      {"data.augment.magnitude", "5", kPixels, {"data.augment.operations=1"}},
      {"data.augment.magnitude_std", "1", kPixels, {"data.augment.operations=1"}},
      {"data.augment.mixup", "1", kMixed},
      {"data.augment.cutmix", "1", kMixed},
      {"data.augment.mix", "0.5", kMixed, {"data.augment.cutmix=1"}},
      {"data.augment.switch", "0.1", kMixed, {"data.augment.cutmix=1", "data.augment.mixup=1"}},
      {"data.augment.smoothing", "0.1", kMixed},
      {"data.augment.repeats", "2", kRepeated},
      {"optim.name", "muon"},
      {"optim.lr", "1"},
      {"optim.beta1", "0.5"},
      {"optim.beta2", "0.5"},
      {"optim.eps", "1"},
      {"optim.weight_decay", "1"},
      {"optim.clip", "2"},
      {"optim.freeze", "norm"},
      {"optim.schedule.kind", "constant"},
      {"optim.schedule.warmup", "5"},
      {"optim.schedule.warmup_from", "0.5", "", {"optim.schedule.warmup=3"}},
      {"optim.schedule.final", "0.5"},
      {"optim.schedule.decay", "0.5", "", {"optim.schedule.kind=wsd"}},
      {"optim.decay.linear", "false"},
      {"optim.decay.bias", "true", "vit dit"},  // lm and moe with model.bias, see below
      {"optim.decay.norm", "true"},
      {"optim.decay.embedding", "true"},
      {"optim.decay.scalar", "true", "none"},      // schemes with learned scalars, see below
      {"optim.decay.stream_mix", "true", "none"},  // denseformer, see below
      {"optim.lr_scale.linear", "2"},
      {"optim.lr_scale.bias", "2", "vit dit"},  // the kinds of a model, as above
      {"optim.lr_scale.norm", "2"},
      {"optim.lr_scale.embedding", "2"},
      {"optim.lr_scale.scalar", "2", "none"},
      {"optim.lr_scale.stream_mix", "2", "none"},
      {"optim.muon.momentum", "0.5", "", {"optim.name=muon"}},
      {"optim.muon.scale", "original", "", {"optim.name=muon"}},
      {"optim.muon.lr_scale", "2", "", {"optim.name=muon"}},
      {"train.steps", "7"},
      {"train.seed", "7"},
      {"train.batch", "8"},
      {"train.micro_batch", "1"},
      {"train.z_loss", "0.1", "lm moe"},
      {"train.balance_loss", "0.1", "moe"},
      {"train.router_z_loss", "0.1", "moe"},
      {"train.residual_warmup", "linear"},
      {"train.residual_warmup_steps", "7", "", {"train.residual_warmup=linear"}},
      {"train.ema", "0.9"},
      {"train.eval_every", "5"},
      {"train.checkpoint_every", "5"},
      {"train.record_every", "5"},
      {"train.tensorboard", "true"},
      {"train.keep_last", "5"},
      {"train.keep_every", "5", "", {"train.keep_last=1"}},
      {"train.save_in_background", "true"},
      {"train.max_hours", "5"},
      {"train.max_skips", "5"},
      {"train.skip_outliers", "5"},
      {"train.skip_window", "32", "", {"train.skip_outliers=6"}},
      {"eval.held_out", "5"},
      {"eval.batches", "5"},
      {"eval.problems", "5", "arithmetic"},
      {"eval.prompts", "[a]", "lm moe"},
      {"eval.prompt_tokens", "5", "lm moe", {"eval.prompts=[a]"}},
      {"eval.averaged", "true", "", {"train.ema=0.9"}},
      {"eval.samples", "5", "dit"},
      {"eval.sampler", "ddpm", "dit", {"eval.samples=4"}},
      {"eval.sampler_steps", "5", "dit", {"eval.samples=4"}},
      {"eval.guidance", "2", "dit", {"eval.samples=4"}},
      {"eval.classifier", "a/vit", "dit", {"eval.samples=4"}},
      {"eval.tasks", "[a/set]", "lm moe"},
      {"eval.task_limit", "5", "lm moe", {"eval.tasks=[a/set]"}},
      {"eval.tokenizer", "t.json", "lm moe", {"eval.tasks=[a/set]"}},
      {"engine.ops", "plain"},
      {"engine.precision", "bfloat16"},
      {"engine.device", "cuda"},
      {"engine.threads", "2"},
      {"engine.recompute", "1"},
      {"engine.timeout", "5"},
      {"engine.shard", "optimizer"},
  };
  return keys;
}

bool is_used(const Key& key, const Case& place) {
  const std::string family = place.family, source = place.source;
  std::istringstream terms(key.where);
  bool any = false;
  for (std::string term; terms >> term;) {
    if (term == family || term == source || term == family + "+" + source) return true;
    any = true;
  }
  return !any;
}

TEST(KeysInUse, EveryKeyIsInTheTable) {
  std::set<std::string> listed;
  for (const Key& key : table()) EXPECT_TRUE(listed.insert(key.path).second) << key.path << " twice";
  for (const auto& key : config::describe<RunConfig>()) {
    EXPECT_EQ(listed.count(key.path), 1U) << key.path << ": which families and sources use it?";
    listed.erase(key.path);
    for (const auto& use : key.uses) {  // what a use names is there
      for (const auto& text : use.values) {
        if (use.keys.front() == "model.family") {
          EXPECT_TRUE(enum_from_text<models::Family>(text)) << key.path << " " << text;
        } else if (use.keys.front() == "data.source") {
          EXPECT_TRUE(enum_from_text<data::Source>(text)) << key.path << " " << text;
        }
      }
    }
  }
  EXPECT_TRUE(listed.empty()) << *listed.begin() << " is no key";
}

TEST(KeysInUse, EveryFamilyAndSourceIsTried) {
  std::set<std::string> tried;
  for (const Case& place : kCases) tried.insert({place.family, place.source});
  for (const auto& text : enum_choices<models::Family>()) EXPECT_EQ(tried.count(text), 1U) << text;
  for (const auto& text : enum_choices<data::Source>()) EXPECT_EQ(tried.count(text), 1U) << text;
}

TEST(KeysInUse, AKeyWithoutEffectIsRefusedInEveryFamilyAndSource) {
  for (const Case& place : kCases) {
    ASSERT_NO_THROW(read_config(recipe(place, {}))) << place.family << " " << place.source;
    for (const Key& key : table()) {
      if (key.value[0] == '\0') continue;
      const std::string assignment = std::string(key.path) + "=" + key.value;
      const std::string name = std::string(place.family) + " " + place.source + " " + assignment;
      const bool used = is_used(key, place);
      // Where the key has no use, its companions need not have one either: they would be refused before it.
      const std::string said = said_of(place, used ? key.with : std::vector<std::string>{}, assignment);
      EXPECT_EQ(said.empty(), used) << name << ": " << said;
      EXPECT_EQ(said.find('\n'), std::string::npos) << name;
      if (!key.with.empty()) {
        EXPECT_NE(said_of(place, {}, assignment), "") << name << " alone";
      }
    }
  }
}

TEST(KeysInUse, DecayOfNothingIsRefused) {
  const Case place = kCases[0];
  EXPECT_EQ(said_of(place, {"optim.decay.norm=true"}, "optim.weight_decay=0.05"), "");
  const std::string said = said_of(place, {"optim.decay.linear=false"}, "optim.weight_decay=0.05");
  EXPECT_NE(said.find("optim.weight_decay: has no effect: it is used with"), std::string::npos) << said;
}

TEST(KeysInUse, RefusalsSayWhoUsesTheKey) {
  const auto said = [](const Case& place, const std::string& assignment) { return said_of(place, {}, assignment); };
  EXPECT_EQ(said({"vit", "shapes"}, "data.train=photos"),
            "command line: data.train: has no effect: it is used by data.source text, tokens, idx, cifar, folder, "
            "latents, and data.source is shapes");
  EXPECT_EQ(said({"lm", "arithmetic"}, "model.experts=4"),
            "command line: model.experts: has no effect: it is used by model.family moe, and model.family is lm");
  EXPECT_EQ(said({"lm", "arithmetic"}, "optim.decay.stream_mix=true"),
            "command line: optim.decay.stream_mix: has no effect: no parameter of this model is of kind stream_mix");
  EXPECT_EQ(said({"lm", "arithmetic"}, "optim.schedule.decay=0.5"),
            "command line: optim.schedule.decay: has no effect: it is used by optim.schedule.kind wsd, and "
            "optim.schedule.kind is cosine");
  EXPECT_EQ(said({"vit", "random"}, "data.augment.mix=0.5"),
            "command line: data.augment.mix: has no effect: it is used with data.augment.mixup or "
            "data.augment.cutmix, and data.augment.mixup is 0, data.augment.cutmix is 0");
}

TEST(KeysInUse, WhatDecaysDependsOnTheModel) {
  const Case lm{"lm", "arithmetic"};
  EXPECT_EQ(said_of(lm, {"model.bias=true"}, "optim.decay.bias=true"), "");
  EXPECT_EQ(said_of(lm, {"model.residual=hc"}, "optim.decay.scalar=true"), "");
  EXPECT_EQ(said_of(lm, {"model.residual=denseformer"}, "optim.decay.stream_mix=true"), "");
  EXPECT_EQ(said_of(lm, {"model.residual=denseformer"}, "optim.lr_scale.stream_mix=2"), "");
  EXPECT_NE(said_of(lm, {"model.residual=denseformer(period=1000)"}, "optim.decay.stream_mix=true"), "");
  EXPECT_NE(said_of(lm, {"optim.weight_decay=0"}, "optim.decay.norm=true"), "");
  EXPECT_NE(said_of(lm, {"init.from=a/run"}, "init.rule=normal"), "");
  EXPECT_NE(said_of({"lm", "text"}, {"data.val=b"}, "data.val_fraction=0.2"), "");
  EXPECT_NE(said_of(lm, {"model.positions=learned"}, "model.rope_theta=500"), "");
  EXPECT_NE(said_of(lm, {"optim.schedule.kind=constant"}, "optim.schedule.final=0.5"), "");
}

TEST(KeysInUse, ALaterChoiceDropsWhatItLeavesWithoutEffect) {
  config::Value value = recipe({"moe", "arithmetic"}, {"model.experts=4", "data.digits=2", "optim.decay.scalar=true",
                                                       "model.residual=hc", "train.balance_loss=0.5"});
  for (const char* const later : {"model.family=lm", "data.source=text", "data.train=a.txt", "model.residual=pre"}) {
    config::apply_override(value, later);
  }
  const RunConfig config = read_config(value);
  EXPECT_EQ(config.model.experts, 8);
  EXPECT_EQ(config.data.digits, 4);
  EXPECT_EQ(config.train.balance_loss, 0.01);
  EXPECT_FALSE(config.optim.decay.scalar);
  // The resolved text has nothing in it that would be refused.
  EXPECT_NO_THROW(read_config(config::parse_yaml(config_text(config), "config.yaml")));
}

TEST(KeysInUse, AResolvedConfigCanBeStartedFrom) {
  config::Value value = config::parse_yaml(config_text(tiny_family("vit")), "config.yaml");
  EXPECT_EQ(read_config(value).model.context, 17);
  config::apply_override(value, "model.patch=8");  // the context of the file follows
  EXPECT_EQ(read_config(value).model.context, 5);
}

TEST(KeysInUse, WhatARunSaysOfItselfIsKept) {
  const TemporaryFolder folder("use");
  config::Value value =
      recipe({"vit", "shapes"}, {"data.train=photos", "model.experts=4", "optim.decay.stream_mix=true"});
  EXPECT_THROW(read_config(value), UsageError);
  io::write_file_atomic(folder / "config.yaml", config::to_yaml(value));
  const RunConfig config = read_config_file((folder / "config.yaml").string());
  EXPECT_EQ(config.data.train, std::vector<std::string>{"photos"});
  EXPECT_EQ(config.model.experts, 4);
  EXPECT_EQ(config_text(read_config(config::in_layer(config::print(config), config::kStoredLayer))),
            config_text(config));
}

TEST(KeysInUse, AnEditBeforeAResumeMustHaveAnEffect) {
  RunConfig then = tiny_config(), now = then;
  now.eval.guidance = 3;
  try {
    check_edits(now, then, {}, "run", "run/step4");
    FAIL() << "accepted";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "run/config.yaml: eval.guidance: has no effect: it is used by model.family dit, and model.family is "
                 "lm");
  }
  then.eval.guidance = 3;  // an old run may have had it all the time
  EXPECT_NO_THROW(check_edits(now, then, {}, "run", "run/step4"));
}

}  // namespace use_test
}  // namespace siamese::train
